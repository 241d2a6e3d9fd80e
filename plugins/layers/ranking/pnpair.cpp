// Counts the pairs of each list that are in the right order. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "integers.h"
#include "ranking.h"

namespace tenon::ranking {

namespace {

enum { kScore = 0, kLabel = 1, kQuery = 2, kWeight = 3 };  // inputs
enum { kRight = 0, kWrong = 1, kTied = 2, kStates = 3 };   // states

struct Pnpair {
  static void describe(tn::LayerDescription& d) {
    d.type("pnpair",
           "Counts the pairs of different label within each list by their scores: right, where the one of the larger "
           "label has the larger score; wrong; and tied, where the scores are equal. pnpair is (right + tied / 2) / "
           "(wrong + tied / 2), infinite where no pair is wrong or tied and 0 where there is no pair. A list is a "
           "sequence, or all samples of a minibatch with one query. A pair counts as much as the mean of its weights, "
           "else 1. A score that is not a number is wrong.");
    d.role(TN_ROLE_METRIC);
    d.input("score", "[rows], or [rows, 1]");
    d.input("label", "[rows]: how good each is; integers are taken as numbers");
    d.input("query", "[samples], integers: which list each is of; where scores are no sequences",
            TN_PORT_OPTIONAL | TN_PORT_INTEGER);
    d.input("weight", "[rows]", TN_PORT_OPTIONAL);
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec score = planner.input(kScore);
    require_one_number(planner, kScore);
    for (const uint32_t i : {kLabel, kQuery, kWeight})
      if (planner.has_input(i)) planner.require_per_row(i, score.leading(1));
    if (score.is_ragged() && planner.has_input(kQuery))
      throw planner.bad_input(kQuery, "must be absent: the sequences of \"score\" are the lists");
    if (!score.is_ragged() && !planner.has_input(kQuery))
      throw planner.bad_input(kScore, "must be sequences (ragged), or there must be a query for each sample");
    planner.state(kStates);
  }

  static void finalize(const tn::Attributes&, const double* state, tn::Results& results) {
    const double right = state[kRight] + state[kTied] / 2;
    const double wrong = state[kWrong] + state[kTied] / 2;
    results.add("pnpair", right == 0 ? 0 : wrong == 0 ? std::numeric_limits<double>::infinity() : right / wrong);
    results.add("right", state[kRight]);
    results.add("wrong", state[kWrong]);
    results.add("tied", state[kTied]);
  }
};

struct Sums {
  double of[kStates];
};

// One run. A task is a block of kBlock places of `order`; each is paired with the later places of its list.
struct Run {
  Floats score, label;   // [rows] each
  const Floats* weight;  // [rows]; null: all weights are 1
  int64_t rows;
  int64_t* order;  // [rows] the rows, list by list
  int64_t* ends;   // [rows] for each place of `order`: the end of its list
  Sums* sums;      // [blocks] sums of each task
};
constexpr int64_t kBlock = 64;

// Task `block`: sums[block] = weights of the pairs whose first place is in the block, by right, wrong and tied.
void count_block(void* argument, int64_t block, int32_t) {
  const Run& run = *static_cast<const Run*>(argument);
  Sums sums = {};
  for (int64_t i = block * kBlock; i < std::min(run.rows, (block + 1) * kBlock); ++i)
    for (int64_t j = i + 1; j < run.ends[i]; ++j) {
      const int64_t a = run.order[i], b = run.order[j];
      const double la = run.label[a], lb = run.label[b];
      if (!(la < lb) && !(la > lb)) continue;
      const double higher = run.score[la > lb ? a : b], lower = run.score[la > lb ? b : a];
      const double weight = run.weight == nullptr ? 1 : ((*run.weight)[a] + (*run.weight)[b]) / 2;
      sums.of[higher > lower ? kRight : higher == lower ? kTied : kWrong] += weight;
    }
  run.sums[block] = sums;
}

// Fills order and ends [rows]: by the innermost sequences of `score`, or by equal values of query [rows].
void find_lists(const Run& run, const tn_tensor& score, const tn_tensor* query) {
  for (int64_t row = 0; row < run.rows; ++row) run.order[row] = row;
  if (query == nullptr) {
    const int64_t* offsets = innermost(score);
    for (int64_t list = 0, row = 0; row < run.rows; ++list)
      for (; row < offsets[list + 1]; ++row) run.ends[row] = offsets[list + 1];
    return;
  }
  const kernels::Integers of(*query);
  std::sort(run.order, run.order + run.rows, [&](int64_t a, int64_t b) {
    const int64_t x = of[a], y = of[b];
    return x < y || (x == y && a < b);
  });
  for (int64_t i = run.rows; i-- > 0;) {
    const bool last = i + 1 == run.rows || of[run.order[i]] != of[run.order[i + 1]];
    run.ends[i] = last ? i + 1 : run.ends[i + 1];
  }
}

// inputs: score and label [rows], optional query [rows] and weight [rows]; outputs: three states, one float64 each.
tn_status count_pairs(void* binding, const tn_execution* execution, const tn_call* call) {
  const int64_t most_rows = *static_cast<const int64_t*>(binding);
  const tn_tensor& score = *call->inputs[kScore];
  const auto optional = [&](uint32_t input) { return input < call->inputs_count ? call->inputs[input] : nullptr; };
  const tn_tensor* weight = optional(kWeight);
  const Floats weights(weight == nullptr ? score : *weight);
  auto* order = static_cast<int64_t*>(call->workspace);
  Run run = {Floats(score),
             Floats(*call->inputs[kLabel]),
             weight == nullptr ? nullptr : &weights,
             score.dl.shape[0],
             order,
             order + most_rows,
             reinterpret_cast<Sums*>(order + 2 * most_rows)};
  find_lists(run, score, optional(kQuery));
  const int64_t blocks = (run.rows + kBlock - 1) / kBlock;
  execution->parallel->for_each(execution->parallel->self, blocks, &count_block, &run);
  for (uint32_t state = 0; state < kStates; ++state) {
    double sum = 0;
    for (int64_t block = 0; block < blocks; ++block) sum += run.sums[block].of[state];
    put(*call->outputs[state], 0, sum, false);
  }
  return TN_OK;
}

tn_status supports(const tn_kernel_site* site, int32_t*) {
  for (const int input : {kScore, kLabel, kWeight}) {
    const tn_spec* spec = static_cast<uint32_t>(input) < site->inputs_count ? site->inputs[input] : nullptr;
    if (spec != nullptr && spec->dtype != site->compute) return TN_UNSUPPORTED;
  }
  return TN_OK;
}

tn_status query(const tn_kernel_site*, tn_kernel_needs*) { return TN_OK; }

tn_status prepare_pairs(const tn_kernel_site* site, int32_t direction, tn_prepared* prepared) {
  const tn_errors* const errors = site->errors;
  if (direction == TN_BACKWARD) return TN_UNSUPPORTED;
  const int64_t rows = site->inputs[kScore]->dims[0].bound;
  if (rows < 0) return tn_fail(errors, TN_INVALID, "score", "the rows have no bound");
  const auto count = static_cast<uint64_t>(rows);
  return prepare(errors, rows, 2 * sizeof(int64_t) * count + sizeof(Sums) * (count / kBlock + 1), &count_pairs,
                 prepared);
}

constexpr tn_kernel kKernel = kernel_of("pnpair", "pnpair_pairs", &supports, &query, &prepare_pairs);

}  // namespace

void add_pnpair(tn::Plugin& plugin) {
  plugin.layer<Pnpair>();
  plugin.kernel(&kKernel);
}

}  // namespace tenon::ranking

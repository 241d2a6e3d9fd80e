// LambdaRank: a cost for every pair of a list, weighted by the change of NDCG if the two change places. No primitive
// loops over pairs, so this is a native kernel. SPDX-License-Identifier: Apache-2.0
#include <tenon/elementary.h>

#include <algorithm>
#include <limits>

#include "ranking.h"

namespace tenon::ranking {

namespace {

enum { kScore = 0, kRelevance = 1, kCostGradient = 3 };  // inputs of a backward call; number 2 is the cost

struct LambdaCost : tn::DeclaresNumbers<LambdaCost> {
  static void describe(tn::LayerDescription& d) {
    d.type("lambda_cost",
           "LambdaRank: a cost for each list, the sum over its pairs of different relevance of |dNDCG| log(1 + "
           "exp(-sigma (s_i - s_j))), where i is the more relevant one, s are the scores, and |dNDCG| is by how much "
           "NDCG (see the metric ndcg) would change if the two changed places in the order that the scores give now "
           "(Burges, Ragno and Le, \"Learning to rank with nonsmooth cost functions\", 2006). |dNDCG| has no "
           "derivative, so the gradient is that of the paper, which pushes a pair apart by as much as its order is "
           "worth; relevance has none. A list without any relevance above 0, or of equal ones, costs nothing. The "
           "loss goes down with NDCG but is not it: watch ndcg beside it.");
    d.role(TN_ROLE_COST);
    d.input("score", "[rows], or [rows, 1]: sequences; each is a list");
    d.input("relevance", "[rows]: 0 and above; integers are taken as numbers");
    d.output("output", "[samples]: the cost of each list");
    d.attribute(tn::int_attribute("top").at_least(1).doc("how many places count in NDCG; absent, all"));
    d.attribute(tn::float_attribute("sigma", 1).at_least(1e-6).doc("how steep the cost of a pair is"));
  }
  static void plan(tn::Planner& planner) {
    plan_lists(planner, kScore, kRelevance);
    planner.output(0, tn::Spec({planner.input(kScore).outer(0)}));
  }
  static void numbers(tn::NumberDeclarer& declarer) { declarer.input(kRelevance, tn::Numbers::at_least(0)); }
};

// A prepared call.
struct Lambda {
  int64_t top;
  double sigma;
  int64_t most_rows;  // bound of the rows of a minibatch, of all lists together
};

// One run; a task is a list. List l has the rows [offsets[l], offsets[l + 1]).
struct Run {
  const Lambda* lambda;
  Floats score, relevance;  // [rows] each
  const int64_t* offsets;   // [lists + 1]
  int64_t* order;           // [rows] the rows of each list, largest score first
  int64_t* ideal;           // [rows] the rows of each list, largest relevance first
  const tn_tensor* to;      // forward: costs [lists]; backward: gradients of the scores [rows]
  const Floats* from;       // backward: gradients of the costs [lists]; null in forward
  bool add;                 // the request is ADD: adds to `to`
};

// Gain of a row, discount of a place from 0, and log(1 + exp(x)) without overflow.
double gain(double relevance) { return tn_math_exp2(relevance) - 1; }
double discount(int64_t place, int64_t top) {
  return place < top ? 1 / tn_math_log2(static_cast<double>(place) + 2) : 0;
}
double softplus(double x) { return x > 0 ? x + tn_math_log1p(tn_math_exp(-x)) : tn_math_log1p(tn_math_exp(x)); }

// order[first, last) = the rows [first, last) sorted from the largest value, equal values in their order, NaN last.
void sort(int64_t* order, int64_t first, int64_t last, const Floats& value) {
  for (int64_t row = first; row < last; ++row) order[row] = row;
  std::sort(order + first, order + last, [&](int64_t a, int64_t b) {
    const double x = value[a], y = value[b];
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) == std::isnan(y) ? a < b : std::isnan(y);
    return x > y || (x == y && a < b);
  });
}

// The largest discounted gain of the list of rows [first, last): its rows in the order of relevance.
double best(const Run& run, int64_t first, int64_t last) {
  sort(run.ideal, first, last, run.relevance);
  const int64_t top = run.lambda->top;
  double sum = 0;
  for (int64_t row = first; row < last && row - first < top; ++row)
    sum += gain(run.relevance[run.ideal[row]]) * discount(row - first, top);
  return sum;
}

// Calls use(row of higher relevance, row of lower relevance, |dNDCG|) for each pair of different relevance in the list
// of rows [first, last) with a row among the top places.
template <typename Use>
void each_pair(const Run& run, int64_t first, int64_t last, Use&& use) {
  const double whole = best(run, first, last);
  if (!(whole > 0)) return;
  sort(run.order, first, last, run.score);
  const int64_t top = run.lambda->top;
  for (int64_t upper = first; upper < last && upper - first < top; ++upper)
    for (int64_t lower = upper + 1; lower < last; ++lower) {
      const int64_t a = run.order[upper], b = run.order[lower];
      const double worth = gain(run.relevance[a]) - gain(run.relevance[b]);
      if (worth == 0) continue;
      const double change = std::abs(worth) * (discount(upper - first, top) - discount(lower - first, top)) / whole;
      worth > 0 ? use(a, b, change) : use(b, a, change);
    }
}

// Task `list`, forward: to[list] = sum over pairs of |dNDCG| * log(1 + exp(-sigma * (s_high - s_low))).
void cost_of_list(void* argument, int64_t list, int32_t) {
  const Run& run = *static_cast<const Run*>(argument);
  const double sigma = run.lambda->sigma;
  double sum = 0;
  each_pair(run, run.offsets[list], run.offsets[list + 1], [&](int64_t high, int64_t low, double change) {
    sum += change * softplus(-sigma * (run.score[high] - run.score[low]));
  });
  put(*run.to, list, sum, run.add);
}

// Task `list`, backward: adds -push to the row of higher relevance of each pair, push to the other, push = from[list] *
// |dNDCG| * sigma / (1 + exp(sigma * (s_high - s_low))). WRITE zeroes the list's rows of `to` first.
void gradient_of_list(void* argument, int64_t list, int32_t) {
  const Run& run = *static_cast<const Run*>(argument);
  const double sigma = run.lambda->sigma;
  const double given = (*run.from)[list];
  if (!run.add)
    for (int64_t row = run.offsets[list]; row < run.offsets[list + 1]; ++row) put(*run.to, row, 0, false);
  each_pair(run, run.offsets[list], run.offsets[list + 1], [&](int64_t high, int64_t low, double change) {
    const double push = given * change * sigma / (1 + tn_math_exp(sigma * (run.score[high] - run.score[low])));
    put(*run.to, high, -push, true);
    put(*run.to, low, push, true);
  });
}

Run run_of(void* binding, const tn_call* call) {
  const auto& lambda = *static_cast<const Lambda*>(binding);
  auto* order = static_cast<int64_t*>(call->workspace);
  return {&lambda,
          Floats(*call->inputs[kScore]),
          Floats(*call->inputs[kRelevance]),
          innermost(*call->inputs[kScore]),
          order,
          order + lambda.most_rows,
          call->outputs[0],
          nullptr,
          call->requests[0] == TN_REQUEST_ADD};
}

// inputs: score [rows], relevance [rows]; outputs: costs [lists].
tn_status forward(void* binding, const tn_execution* execution, const tn_call* call) {
  if (call->requests[0] == TN_REQUEST_NONE) return TN_OK;
  Run run = run_of(binding, call);
  execution->parallel->for_each(execution->parallel->self, call->outputs[0]->dl.shape[0], &cost_of_list, &run);
  return TN_OK;
}

// inputs: score [rows], relevance [rows], costs, gradients of the costs [lists]; outputs: gradients of score and
// relevance [rows]. That of relevance is 0.
tn_status backward(void* binding, const tn_execution* execution, const tn_call* call) {
  const tn_tensor* relevance = call->outputs[kRelevance];
  if (call->requests[kRelevance] == TN_REQUEST_WRITE)
    for (int64_t row = 0; row < relevance->dl.shape[0]; ++row) put(*relevance, row, 0, false);
  if (call->requests[kScore] == TN_REQUEST_NONE) return TN_OK;
  Run run = run_of(binding, call);
  const Floats from(*call->inputs[kCostGradient]);
  run.from = &from;
  execution->parallel->for_each(execution->parallel->self, call->inputs[kCostGradient]->dl.shape[0], &gradient_of_list,
                                &run);
  return TN_OK;
}

tn_status supports(const tn_kernel_site* site, int32_t*) {
  const bool fits = site->inputs[kScore]->storage == TN_RAGGED && site->inputs[kScore]->dtype == site->compute &&
                    site->inputs[kRelevance]->dtype == site->compute;
  return fits ? TN_OK : TN_UNSUPPORTED;
}

tn_status query(const tn_kernel_site*, tn_kernel_needs* needs) {
  needs->reads_in[kScore] = needs->reads_in[kRelevance] = 1;
  return TN_OK;
}

tn_status prepare_lambda(const tn_kernel_site* site, int32_t direction, tn_prepared* prepared) {
  const tn_errors* const errors = site->errors;
  const int64_t rows = site->inputs[kScore]->dims[0].bound;
  if (rows < 0) return tn_fail(errors, TN_INVALID, "score", "the rows have no bound");
  const Lambda lambda = {tn_int(site->attributes, "top", std::numeric_limits<int64_t>::max()),
                         tn_float(site->attributes, "sigma", 1), rows};
  return prepare(errors, lambda, 2 * sizeof(int64_t) * static_cast<uint64_t>(rows),
                 direction == TN_BACKWARD ? &backward : &forward, prepared);
}

constexpr tn_kernel kKernel = kernel_of("lambda_cost", "lambda_cost_pairs", &supports, &query, &prepare_lambda);

}  // namespace

void add_lambda_cost(tn::Plugin& plugin) {
  plugin.layer<LambdaCost>();
  plugin.kernel(&kKernel);
}

}  // namespace tenon::ranking

// How many runs of ids translations have in common with the right ones. Runs are sorted, so this is a native kernel.
// SPDX-License-Identifier: Apache-2.0
#include <tenon/elementary.h>

#include <algorithm>
#include <string>
#include <tenon/kernel.hpp>

#include "bounds.h"
#include "integers.h"
#include "metrics.h"
#include "ragged.h"

namespace tenon::metrics {

namespace {

using kernels::bound_of;
using kernels::innermost;
using kernels::Integers;
using kernels::product;

enum { kInput = 0, kLabel = 1 };
// States: the ids of all inputs, those of all labels; then for n = 1, 2, ... the runs of n ids that are right, and all
// runs of n ids of the inputs.
enum { kIds = 0, kLabels = 1, kRuns = 2 };

struct Bleu {
  static void describe(tn::LayerDescription& d) {
    d.type("bleu",
           "BLEU of sequences of ids, such as translations, and the right ones: exp(mean of log p_n over n = 1 to "
           "order) times a penalty for brevity, of all sequences of a pass together. p_n is the share of the runs of n "
           "consecutive ids of the inputs that their labels have, each counted at most as often as in its label. The "
           "penalty is exp(1 - labels / ids) where the inputs have fewer ids than the labels, else 1 (Papineni, "
           "Roukos, Ward and Zhu, \"BLEU: a method for automatic evaluation of machine translation\", 2002, with one "
           "label for each sequence). bleu is 0 if an order has no right run, as of inputs that are all shorter than "
           "order; with smooth, 1 is added to the right runs and to all runs of each order from 2 on (Lin and Och, "
           "\"ORANGE: a method for evaluating automatic evaluation metrics for machine translation\", 2004). Other "
           "values: brevity_penalty, 0 without ids; precision_n for each order.");
    d.role(TN_ROLE_METRIC);
    d.input("input", "[ids]: sequences, such as generated ones", TN_PORT_INTEGER);
    d.input("label", "[labels]: as many sequences, of any lengths: the right ids", TN_PORT_INTEGER);
    d.attribute(tn::int_attribute("order", 4).at_least(1).at_most(16).doc("the most ids of a run"));
    d.attribute(tn::bool_attribute("smooth", false).doc("add 1 to the counts of runs of 2 ids and more"));
  }
  static void plan(tn::Planner& planner) {
    kernels::plan_sequences(planner, kInput, 1, "[ids]");
    kernels::plan_sequences(planner, kLabel, 1, "[labels]");
    kernels::require_same_sequences(planner, kInput, kLabel);
    planner.state(kRuns + 2 * static_cast<uint32_t>(planner.attributes().integer("order")));
  }
  static void finalize(const tn::Attributes& attributes, const double* state, tn::Results& results) {
    const int64_t order = attributes.integer("order");
    const auto precision = [&](int64_t n) {
      const double* const runs = state + kRuns + 2 * (n - 1);
      const double added = attributes.flag("smooth") && n > 1 ? 1 : 0;
      return ratio(runs[0] + added, runs[1] + added);
    };
    double logarithms = 0;
    for (int64_t n = 1; n <= order; ++n) logarithms += tn_math_log(precision(n)) / static_cast<double>(order);
    const double ids = state[kIds], labels = state[kLabels];
    const double penalty = ids == 0 ? 0 : ids >= labels ? 1 : tn_math_exp(1 - labels / ids);
    results.add("bleu", penalty * tn_math_exp(logarithms));
    results.add("brevity_penalty", penalty);
    for (int64_t n = 1; n <= order; ++n) results.add(("precision_" + std::to_string(n)).c_str(), precision(n));
  }
};

class CommonRuns {
 public:
  static void describe(tn::KernelDescription& d) {
    d.kernel("bleu", "cpu", "bleu_common_runs", 10);
    d.portable();
    d.compute(TN_F32);
    d.compute(TN_F64);
  }
  CommonRuns(const tn::KernelSite& site, int32_t direction)
      : order_(site.attributes().integer("order")),
        sequences_(site.input(kLabel).outer(0)),
        most_sequences_(bound_of(sequences_, "label")),
        most_ids_(bound_of(site.input(kInput)[0], "input")),
        most_labels_(bound_of(site.input(kLabel)[0], "label")) {
    if (direction == TN_BACKWARD) throw tn::Failure(TN_UNSUPPORTED, "", "a metric has no derivative");
  }
  uint64_t workspace_bytes() const {
    const uint64_t counts = product(static_cast<uint64_t>(order_), most_sequences_);
    return product(sizeof(int64_t), most_ids_ + most_labels_ + counts);
  }

  void run(const tn::Call& call) const {
    auto* const workspace = static_cast<int64_t*>(call->workspace);
    Run run = {{Integers(*call.input(kInput)), innermost(*call.input(kInput)), workspace},
               {Integers(*call.input(kLabel)), innermost(*call.input(kLabel)), workspace + most_ids_},
               order_,
               workspace + most_ids_ + most_labels_};
    const int64_t sequences = call.size(sequences_);
    const tn_parallel& parallel = *call.execution().parallel;
    parallel.for_each(parallel.self, sequences, &match, &run);
    call.out<double>(kIds)[0] = static_cast<double>(run.found.ends[sequences] - run.found.ends[0]);
    call.out<double>(kLabels)[0] = static_cast<double>(run.right.ends[sequences] - run.right.ends[0]);
    for (int64_t n = 1; n <= order_; ++n) {
      int64_t common = 0, all = 0;
      for (int64_t sequence = 0; sequence < sequences; ++sequence) {
        common += run.common[sequence * order_ + n - 1];
        all += std::max<int64_t>(run.found.ends[sequence + 1] - run.found.ends[sequence] - n + 1, 0);
      }
      const auto state = static_cast<uint32_t>(kRuns + 2 * (n - 1));
      call.out<double>(state)[0] = static_cast<double>(common);
      call.out<double>(state + 1)[0] = static_cast<double>(all);
    }
  }

 private:
  struct Side {
    Integers ids;
    const int64_t* ends;  // offsets of the sequences
    int64_t* places;      // [rows]: the rows of each sequence in the order of the runs that begin there
  };
  struct Run {
    Side found, right;
    int64_t order;
    int64_t* common;  // [sequences, order]
  };
  struct Sequence {
    const Side& side;
    int64_t begin, end;

    Sequence(const Side& of, int64_t number) : side(of), begin(of.ends[number]), end(of.ends[number + 1]) {}
    // Sorts the places by the runs of up to `order` ids.
    void sort(int64_t order) const {
      for (int64_t row = begin; row < end; ++row) side.places[row] = row;
      std::sort(side.places + begin, side.places + end,
                [&](int64_t i, int64_t j) { return compare(*this, i, *this, j, order) < 0; });
    }
  };

  // Compares the runs of up to n ids that begin at two rows: below, at or above 0. A run that ends first is less.
  static int compare(const Sequence& a, int64_t i, const Sequence& b, int64_t j, int64_t n) {
    for (int64_t k = 0; k < n; ++k, ++i, ++j) {
      if (i == a.end || j == b.end) return (j == b.end ? 1 : 0) - (i == a.end ? 1 : 0);
      const int64_t x = a.side.ids[i], y = b.side.ids[j];
      if (x != y) return x < y ? -1 : 1;
    }
    return 0;
  }

  // Returns how many runs of n ids two sequences with sorted places have in common.
  static int64_t common(const Sequence& a, const Sequence& b, int64_t n) {
    int64_t count = 0, i = a.begin, j = b.begin;
    while (i < a.end && j < b.end) {
      const int64_t at = a.side.places[i], other = b.side.places[j];
      if (a.end - at < n) {  // too short a run
        ++i;
      } else if (b.end - other < n) {
        ++j;
      } else {
        const int order = compare(a, at, b, other, n);
        count += order == 0 ? 1 : 0;
        i += order <= 0 ? 1 : 0;
        j += order >= 0 ? 1 : 0;
      }
    }
    return count;
  }

  static void match(void* argument, int64_t number, int32_t) {
    const Run& run = *static_cast<const Run*>(argument);
    const Sequence found(run.found, number), right(run.right, number);
    found.sort(run.order);
    right.sort(run.order);
    for (int64_t n = 1; n <= run.order; ++n) run.common[number * run.order + n - 1] = common(found, right, n);
  }

  int64_t order_;
  tn::Dim sequences_;
  uint64_t most_sequences_, most_ids_, most_labels_;
};

}  // namespace

void add_bleu(tn::Plugin& plugin) {
  plugin.layer<Bleu>();
  plugin.kernel(tn::kernel<CommonRuns>());
}

}  // namespace tenon::metrics

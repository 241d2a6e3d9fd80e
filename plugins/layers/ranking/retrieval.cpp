// Metrics of what is found among the first of a ranked list. SPDX-License-Identifier: Apache-2.0
#include "ranking.h"

namespace tenon::ranking {

namespace {

using tn::Float;
using tn::Int;

enum { kScore = 0, kRelevance = 1 };

// A mean over the lists that have a relevant row, of a number that Formula makes of places and relevance.
template <typename Formula>
struct Retrieval {
  static void describe(tn::LayerDescription& d) {
    d.type(Formula::kType, Formula::kDoc);
    d.role(TN_ROLE_METRIC);
    d.input("score", "[rows], or [rows, 1]: sequences; each is a list");
    d.input("relevance", "[rows]: above 0 for what is relevant; integers are taken as numbers");
    describe_top(d);
  }

  static void plan(tn::Planner& planner) {
    plan_lists(planner, kScore, kRelevance);
    planner.state(2);
  }

  // score and relevance [rows] -> [lists], and from it the sum and the number of lists that count.
  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor score = body.input(kScore), relevance = body.input(kRelevance);
    const tn::Dim rows = score.spec()[0];
    const int64_t top = top_of(attributes);
    tn::Program each;
    const Float grade = each.full();
    const Int place = each.full<Int>();
    const tn::Logical real = grade > 0;
    each.output(select(real && place < top, Formula::gain(place), 0.0));
    each.output(to_float(real));
    const std::vector<tn::Tensor> values = body.pointwise(
        each, {relevance.view(tn::Spec({rows})), body.segment(TN_SEGMENT_RANK, score.view(tn::Spec({rows})), rows)});
    const tn::Tensor sums = body.segment(Formula::kSum, values[0], rows);
    const tn::Tensor relevant = body.segment(TN_SEGMENT_SUM, values[1], rows);
    tn::Program program;
    const Float reached = program.full(), there = program.full();
    program.output(sum_all(select(there > 0, Formula::share(reached, select(there > 0, there, 1.0)), 0.0)), TN_F64);
    program.output(sum_all(to_float(there > 0)), TN_F64);
    const std::vector<tn::Tensor> state = body.pointwise(program, {sums, relevant});
    body.state(0, state[0]);
    body.state(1, state[1]);
  }

  static void finalize(const tn::Attributes&, const double* state, tn::Results& results) {
    results.add(Formula::kType, state[1] > 0 ? state[0] / state[1] : 0);
  }
};

struct Recall {
  static constexpr const char* kType = "recall_at_k";
  static constexpr const char* kDoc =
      "The share of the relevant rows of a list that are among its top places by score; the mean over the lists that "
      "have a relevant row (Manning, Raghavan and Schuetze, \"Introduction to information retrieval\", 2008, section "
      "8.4). Equal scores are in the order of their rows; NaN comes last. Without lists it is 0.";
  static constexpr auto kSum = TN_SEGMENT_SUM;
  static Float gain(const Int& place) { return to_float(place >= 0); }
  static Float share(const Float& reached, const Float& there) { return reached / there; }
};

struct ReciprocalRank {
  static constexpr const char* kType = "mean_reciprocal_rank";
  static constexpr const char* kDoc =
      "1 / r, where r is the place of the first relevant row by score, from 1, or 0 if it is not among the top places; "
      "the mean over the lists that have a relevant row (Voorhees, \"The TREC-8 question answering track report\", "
      "1999). Equal scores are in the order of their rows; NaN comes last. Without lists it is 0.";
  static constexpr auto kSum = TN_SEGMENT_MAX;
  static Float gain(const Int& place) { return 1 / to_float(place + 1); }
  static Float share(const Float& reached, const Float& /*there*/) { return reached; }
};

}  // namespace

void add_retrieval(tn::Plugin& plugin) {
  plugin.layer<Retrieval<Recall>>();
  plugin.layer<Retrieval<ReciprocalRank>>();
}

}  // namespace tenon::ranking

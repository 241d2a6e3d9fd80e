// Costs and metrics of lists that are ranked by scores. SPDX-License-Identifier: Apache-2.0
#include "ranking.h"

#include <tenon/elementary.h>

namespace tenon::ranking {

namespace {

using tn::Float;
using tn::Int;

struct Ndcg : tn::DeclaresNumbers<Ndcg> {
  enum { kScore = 0, kRelevance = 1 };
  enum { kSum = 0, kLists = 1 };  // state

  static void describe(tn::LayerDescription& d) {
    d.type("ndcg",
           "Normalised discounted cumulative gain of lists ranked by their scores: the sum over the top places r = 1, "
           "2, ... of (2^relevance - 1) / log2(r + 1), divided by the largest that any order of the list has; the mean "
           "over all lists (Jarvelin and Kekalainen, \"Cumulated gain-based evaluation of IR techniques\", 2002; gains "
           "as Burges et al., \"Learning to rank using gradient descent\", 2005). Equal scores are in the order of "
           "their rows; NaN comes last. A list without any relevance above 0 says nothing and is not "
           "counted; without lists the result is 0.");
    d.role(TN_ROLE_METRIC);
    d.input("score", "[rows], or [rows, 1]: sequences; each is a list");
    d.input("relevance", "[rows]: 0 and above; integers are taken as numbers");
    describe_top(d);
  }

  static void plan(tn::Planner& planner) {
    plan_lists(planner, kScore, kRelevance);
    planner.state(2);
  }
  static void numbers(tn::NumberDeclarer& declarer) { declarer.input(kRelevance, tn::Numbers::at_least(0)); }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor score = body.input(kScore), relevance = body.input(kRelevance);
    const tn::Spec rows({score.spec()[0]});
    const tn::Tensor real = gain(attributes, body, score.view(rows), relevance.view(rows));
    const tn::Tensor ideal = gain(attributes, body, relevance.view(rows), relevance.view(rows));
    tn::Program program;
    const Float reached = program.full(), possible = program.full();
    const tn::Logical counts = possible > 0;
    program.output(sum_all(select(counts, reached / select(counts, possible, 1.0), 0.0)), TN_F64);
    program.output(sum_all(to_float(counts)), TN_F64);
    const std::vector<tn::Tensor> state = body.pointwise(program, {real, ideal});
    body.state(kSum, state[kSum]);
    body.state(kLists, state[kLists]);
  }

  static void finalize(const tn::Attributes&, const double* state, tn::Results& results) {
    results.add("ndcg", state[kLists] > 0 ? state[kSum] / state[kLists] : 0);
  }

 private:
  // score [rows], relevance [rows] -> [lists]: the sum of (2^relevance - 1) / log2(place + 2) over the top places, from
  // 0, in the order of `score`. 2^g - 1 is computed as expm1(g log 2).
  static tn::Tensor gain(const tn::Attributes& attributes, tn::Builder& body, const tn::Tensor& score,
                         const tn::Tensor& relevance) {
    const tn::Dim rows = score.spec()[0];
    const int64_t top = top_of(attributes);
    const double log2 = tn_math_log(2.0);
    tn::Program program;
    const Float grade = program.full();
    const Int place = program.full<Int>();
    program.output(select(place < top, expm1(grade * log2) * log2 / log(to_float(place + 2)), 0.0));
    return body.segment(TN_SEGMENT_SUM,
                        body.pointwise(program, {relevance, body.segment(TN_SEGMENT_RANK, score, rows)}).front(), rows);
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.ranking", "0.1.0", "Costs and metrics of ranked lists", "Apache-2.0");
  plugin.layer<Ndcg>();
  add_lambda_cost(plugin);
  add_pnpair(plugin);
  add_retrieval(plugin);
}

}  // namespace

}  // namespace tenon::ranking

const tn_plugin* tenon_plugin() { return tn::entry<tenon::ranking::describe>(); }

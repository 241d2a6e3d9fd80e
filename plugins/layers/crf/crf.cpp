// The cost of a linear-chain conditional random field. SPDX-License-Identifier: Apache-2.0
#include "crf.h"

#include <optional>
#include <string>
#include <vector>

namespace tenon::crf {

using tn::Float;
using tn::Int;
using tn::Tensor;

tn::Spec plan_scores(tn::Planner& planner) {
  tn::Spec input = planner.input_of_rank(0, 2, "sequences (ragged), [rows, tags]");
  if (!input.is_ragged()) throw planner.bad_input(0, "must be sequences (ragged), [rows, tags]");
  const int64_t tags = planner.elements(0, 1);
  constexpr int64_t kMostTags = 1 << 15;  // so that the numbers of pairs of tags fit into 32 bits
  if (tags > kMostTags) throw planner.bad_input(0, "has more than " + std::to_string(kMostTags) + " tags");
  planner.parameter("transitions", tn::Spec({tags + kFrom, tags}), tn::constant_initializer(0));
  return input;
}

namespace {

// A memory [steps, tags] as [steps, tags, tags], whose rows of tags are equal: a product with ones.
Tensor repeated(tn::Builder& body, const Tensor& memory, const Tensor& positions) {
  const tn::Dim steps = memory.spec()[0], tags = memory.spec()[1];
  const Tensor ones = body.constant(tn::Spec({tags}), std::vector<double>(static_cast<size_t>(tags.offset), 1.0));
  tn::Program spread;
  const Int position = spread.per_row<Int>();  // gives the grid its rows
  spread.output(select(position >= 0, spread.per_column(), 0.0));
  const Tensor column = body.pointwise(spread, {positions, ones}).front().view(tn::Spec({steps, tags, 1}));
  return body.gemm(column, memory.view(tn::Spec({steps, 1, tags})));
}

}  // namespace

PathScores paths(tn::Builder& body, const Tensor& scores, const Transitions& transitions, Over over) {
  const tn::Dim rows = scores.spec()[0];
  const int64_t tags = transitions.tags();
  const Tensor start = transitions.row(kStart);
  const Tensor before = transitions.before().view(tn::Spec({tags * tags}));
  const Tensor place = body.segment(TN_SEGMENT_POSITION, rows);

  const tn::Dim steps = body.scan_begin(rows);
  const Tensor score = body.scan_input(scores), position = body.scan_input(place);
  const Tensor memory = body.scan_memory(tn::Spec({tags}));
  tn::Program add;  // [steps, tag, tag before]
  const Float path = add.full();
  add.output(path + add.per_column());
  const Tensor joined =
      body.pointwise(add, {repeated(body, memory, position).view(tn::Spec({steps, tags * tags})), before}).front();
  tn::Program reduce;
  const Float x = reduce.full();
  reduce.output(over == Over::kAllPaths ? log_sum_exp(x) : max_per_row(x));
  const Tensor arrived = body.pointwise(reduce, {joined.view(tn::Spec({steps, tags, tags}))}, 2).front();
  tn::Program choose;
  const Float own = choose.full(), from = choose.full();
  const Int at = choose.per_row<Int>();
  choose.output(own + select(at == 0, choose.per_column(), from));
  const Tensor next = body.pointwise(choose, {score, arrived, position, start}).front();
  body.scan_next(memory, next);
  body.scan_end();
  return {body.scan_output(next), body.scan_last(memory)};
}

namespace {

struct Crf {
  enum { kInput = 0, kLabel = 1, kWeight = 2 };

  static void describe(tn::LayerDescription& d) {
    d.type(
        "crf",
        "Cost of a linear-chain conditional random field (Lafferty, McCallum and Pereira, \"Conditional random fields: "
        "probabilistic models for segmenting and labeling sequence data\", 2001): -log of the probability of the tags "
        "y_1 ... y_n of a sequence, exp(s(y)) / sum_z exp(s(z)) over all sequences z of n tags, with s(y) = a[y_1] + "
        "b[y_n] + sum_t x_t[y_t] + sum_{t > 1} w[y_{t-1}, y_t]. An empty sequence costs 0. The forward algorithm adds "
        "logarithms, so that nothing overflows. The parameter transitions is [tags + 2, tags], as in Paddle: row 0 is "
        "a, row 1 is b, and row 2 + i has the weights w of the tags that follow tag i. It starts at 0. The layer "
        "crf_decoding finds the best tags; it shares the parameter by parameter_name.");
    d.role(TN_ROLE_COST);
    d.input("input", "[rows, tags]: sequences, any numbers");
    d.input("label", "[rows]: the right tag of each row, from 0", TN_PORT_INTEGER);
    d.input("weight", "[samples]: the weight of each; a sample of weight 0 does not count, whatever it is",
            TN_PORT_OPTIONAL);
    d.output("output", "[samples]: the cost of each sequence");
    d.parameter("transitions");
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec input = plan_scores(planner);
    planner.require_per_row(kLabel, input.leading(1));
    planner.index_limit(kLabel, input[1].offset);
    const tn::Spec output({input.outer(0)});
    if (planner.has_input(kWeight)) planner.require_per_row(kWeight, output);
    planner.output(0, output);
  }

  static void lower(const tn::Attributes&, tn::Builder& body) {
    const Tensor given = body.input(kInput);
    const tn::Dim rows = given.spec()[0], sequences = given.spec().outer(0);
    std::optional<Tensor> weight = body.optional_input(kWeight);
    if (weight) weight = weight->view(tn::Spec({sequences}));
    const Tensor scores = weight ? guarded(body, given, *weight) : given;
    const Transitions transitions(body);
    const Tensor all = paths(body, scores, transitions, Over::kAllPaths).whole;
    const Tensor one = score_of(body, scores, body.input(kLabel).view(tn::Spec({rows})), transitions);
    tn::Program cost;
    const Float to_end = cost.full(), path = cost.per_row();
    const Int length = cost.per_row<Int>();
    const Float whole = log_sum_exp(to_end + cost.per_column());
    const Float value = select(length > 0, whole - path, 0.0);
    std::vector<Tensor> operands{all, one, body.segment(TN_SEGMENT_LENGTH, rows), transitions.row(kEnd)};
    if (weight) {
      const Float factor = cost.per_row();
      cost.output(select(factor == 0, 0.0, factor * value));
      operands.push_back(*weight);
    } else {
      cost.output(value);
    }
    body.output(0, body.pointwise(cost, operands).front());
  }

 private:
  // The scores, 0 in sequences of weight 0: 0 times a derivative that is not a number would not be 0.
  static Tensor guarded(tn::Builder& body, const Tensor& scores, const Tensor& weight) {
    tn::Program keep;
    const Float x = keep.full();
    keep.output(select(keep.per_row() == 0, 0.0, x));
    return body.pointwise(keep, {scores, body.segment(TN_SEGMENT_BROADCAST, weight, scores.spec()[0])}).front();
  }

  // The score s(y) of the path `labels` [rows] through scores [rows, tags]: [sequences].
  static Tensor score_of(tn::Builder& body, const Tensor& scores, const Tensor& labels,
                         const Transitions& transitions) {
    const tn::Dim rows = scores.spec()[0];
    const int64_t tags = transitions.tags();
    const Tensor table = transitions.all().view(tn::Spec({(tags + kFrom) * tags}));
    const Tensor position = body.segment(TN_SEGMENT_POSITION, rows);
    const Tensor length = body.segment(TN_SEGMENT_BROADCAST, body.segment(TN_SEGMENT_LENGTH, rows), rows);
    tn::Program back;
    const Int at = back.per_row<Int>();
    back.output(select(at > 0, back.row() - 1, back.row()));
    const Tensor before = body.gather(labels, body.pointwise(back, {position}).front());
    tn::Program place;  // of the weight on the way to a tag, and of that behind it
    const Int tag = place.per_row<Int>(), previous = place.per_row<Int>(), number = place.per_row<Int>();
    place.output(tag + select(number == 0, Int(kStart * tags), (previous + kFrom) * tags));
    place.output(tag + kEnd * tags);
    const std::vector<Tensor> places = body.pointwise(place, {labels, before, position});
    tn::Program sum;
    const Float x = sum.full(), to = sum.per_row(), behind = sum.per_row();
    const Int right = sum.per_row<Int>(), row = sum.per_row<Int>(), count = sum.per_row<Int>();
    sum.output(sum_per_row(select(sum.column() == right, x, 0.0)) + to + select(row == count - 1, behind, 0.0));
    const Tensor parts = body.pointwise(sum, {scores, body.gather(table, places[0]), body.gather(table, places[1]),
                                              labels, position, length})
                             .front();
    return body.segment(TN_SEGMENT_SUM, parts, rows);
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.crf", "0.1.0", "Linear-chain conditional random fields", "Apache-2.0");
  plugin.layer<Crf>();
  add_decoding(plugin);
}

}  // namespace

}  // namespace tenon::crf

const tn_plugin* tenon_plugin() { return tn::entry<tenon::crf::describe>(); }

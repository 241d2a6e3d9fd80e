// Layers of sequences: expand, concat, reverse, softmax. Sequences are concatenated rows, without padding.
// SPDX-License-Identifier: Apache-2.0
#include "sequences.h"

#include <string>

namespace tenon::sequences {

namespace {

using tn::Float;
using tn::Int;

struct SequenceExpand {
  enum { kValue = 0, kLike = 1 };

  static void describe(tn::LayerDescription& d) {
    d.type("sequence_expand",
           "Every row of a sequence gets the value that its sample has; of sequences of sequences the value is of the "
           "sample or of the inner sequence. The derivative of a value is the sum of those of its rows.");
    d.input("value", "[samples, ...], or [inner sequences, ...] of \"like\"", TN_PORT_ANY);
    d.input("like", "[rows, ...]: the sequences; their values are not read", TN_PORT_ANY);
    d.output("output", "[rows, ...]: rows as \"like\" has, each as a value");
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec like = ragged_input(planner, kLike);
    const tn::Spec value = planner.input(kValue);
    if (value.rank() == 0 || level_of(value, like) < 0)
      throw planner.bad_input(kValue, "must have one value for each sequence of \"like\"")
          .expected(with_first(like.outer(0), value));
    planner.output(0, with_first(like[0], value));
  }

  static void lower(const tn::Attributes&, tn::Builder& body) {
    const tn::Spec like = body.input(kLike).spec();
    tn::Tensor value = body.input(kValue);
    for (int32_t level = level_of(value.spec(), like); level >= 0; --level)
      value = body.segment(TN_SEGMENT_BROADCAST, value, level == 0 ? like[0] : like.outer(level - 1));
    body.output(0, value);
  }

 private:
  // The outer dimension of `like` to whose sequences the values belong; -1 if none.
  static int32_t level_of(const tn::Spec& value, const tn::Spec& like) {
    for (int32_t level = 0; level < static_cast<int32_t>(like.levels()); ++level)
      if (value[0].same(like.outer(level))) return level;
    return -1;
  }
};

struct SequenceConcat {
  enum { kFirst = 0, kSecond = 1 };

  static void describe(tn::LayerDescription& d) {
    d.type("sequence_concat",
           "Sequences of which each is one of the first input and then one of the second. Of sequences of sequences it "
           "is the innermost that are concatenated, which must lie in the same outer ones.");
    d.input("first", "[rows, ...]: sequences");
    d.input("second", "[other rows, ...]: as many sequences, of rows like those of the first");
    d.output("output", "[rows of both, ...]");
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec first = ragged_input(planner, kFirst);
    const tn::Spec second = ragged_input(planner, kSecond);
    if (!with_first(first[0], second).same_shape(first))
      throw planner.bad_input(kSecond, "must have rows like those of the first input")
          .expected(with_first(second[0], first));
    planner.output(0, with_first(planner.concatenated_rows(kFirst, kSecond), first));
  }

  // Scatters the rows of both inputs to their places in [rows of both, ...] and adds the two. begin and middle
  // [sequences]: where the rows of the first and of the second input go.
  static void lower(const tn::Attributes&, tn::Builder& body) {
    const tn::Tensor first = body.input(kFirst), second = body.input(kSecond);
    const tn::Dim rows = body.rows(0);
    const tn::Tensor begin = body.segment(TN_SEGMENT_START, rows);
    tn::Program behind;
    const Int at = behind.per_row<Int>();
    behind.output(at + behind.per_row<Int>());
    const tn::Tensor middle =
        body.pointwise(behind, {begin, body.segment(TN_SEGMENT_LENGTH, first.spec()[0])}, kRows).front();
    tn::Program sum;
    const Float one = sum.full();
    sum.output(one + sum.full());
    body.output(
        0, body.pointwise(sum, {placed(body, first, begin, rows), placed(body, second, middle, rows)}, kRows).front());
  }

 private:
  // value [own rows, ...] -> [rows, ...], 0 elsewhere: row r of sequence s goes to begin[s] + r; begin int64
  // [sequences].
  static tn::Tensor placed(tn::Builder& body, const tn::Tensor& value, const tn::Tensor& begin, const tn::Dim& rows) {
    const tn::Dim own = value.spec()[0];
    tn::Program program;
    const Int at = program.per_row<Int>();
    program.output(at + program.per_row<Int>());
    const std::vector<tn::Tensor> places = body.pointwise(
        program, {body.segment(TN_SEGMENT_BROADCAST, begin, own), body.segment(TN_SEGMENT_POSITION, own)}, kRows);
    return body.scatter_add(value, places.front(), rows);
  }
};

struct SequenceReverse {
  static void describe(tn::LayerDescription& d) {
    d.type("sequence_reverse", "The rows of each innermost sequence from the last to the first.");
    d.input("input", "[rows, ...]: sequences", TN_PORT_ANY);
    d.output("output", "the shape of the input");
  }
  static void plan(tn::Planner& planner) { planner.output(0, ragged_input(planner, 0)); }
  static void lower(const tn::Attributes&, tn::Builder& body) {
    const tn::Tensor input = body.input(0);
    const tn::Dim rows = input.spec()[0];
    // last [sequences]: the last row of each. Row r of the output is row last - position(r) of the input.
    tn::Program ends;
    const Int begin = ends.per_row<Int>();
    ends.output(begin + ends.per_row<Int>() - 1);
    const tn::Tensor last =
        body.pointwise(ends, {body.segment(TN_SEGMENT_START, rows), body.segment(TN_SEGMENT_LENGTH, rows)}, kRows)
            .front();
    tn::Program mirror;
    const Int from = mirror.per_row<Int>();
    mirror.output(from - mirror.per_row<Int>());
    const std::vector<tn::Tensor> ids = body.pointwise(
        mirror, {body.segment(TN_SEGMENT_BROADCAST, last, rows), body.segment(TN_SEGMENT_POSITION, rows)}, kRows);
    body.output(0, body.gather(input, ids.front()));
  }
};

struct SequenceSoftmax {
  static void describe(tn::LayerDescription& d) {
    d.type("sequence_softmax",
           "Softmax over the rows of each innermost sequence, for every element of a row by itself: exp(x_r - m) / "
           "sum_s exp(x_s - m), where m is the largest of the sequence, so that nothing overflows. As weights of a sum "
           "over the sequence it is attention (Bahdanau, Cho and Bengio, \"Neural machine translation by jointly "
           "learning to align and translate\", 2015).");
    d.input("input", "[rows, ...]: sequences");
    d.output("output", "the shape of the input. Sums to 1 over the rows of a sequence");
  }
  static void plan(tn::Planner& planner) { planner.output(0, ragged_input(planner, 0)); }
  static void lower(const tn::Attributes&, tn::Builder& body) {
    const tn::Tensor input = body.input(0);
    const tn::Dim rows = input.spec()[0];
    // The reduction of each sequence, broadcast to its rows: [rows, ...] -> [rows, ...].
    const auto of_all = [&](int32_t op, const tn::Tensor& value) {
      return body.segment(TN_SEGMENT_BROADCAST, body.segment(op, value, rows), rows);
    };
    tn::Program power;
    const Float x = power.full();
    power.output(exp(x - stop(power.full())));
    const tn::Tensor powers = body.pointwise(power, {input, of_all(TN_SEGMENT_MAX, input)}, kRows).front();
    tn::Program share;
    const Float e = share.full();
    share.output(e / share.full());
    body.output(0, body.pointwise(share, {powers, of_all(TN_SEGMENT_SUM, powers)}, kRows).front());
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.sequences", "0.1.0", "Layers of sequences", "Apache-2.0");
  add_pool(plugin);
  plugin.layer<SequenceExpand>();
  plugin.layer<SequenceConcat>();
  plugin.layer<SequenceReverse>();
  plugin.layer<SequenceSoftmax>();
  add_context(plugin);
  add_padding(plugin);
  add_row_conv(plugin);
  add_slice(plugin);
}

}  // namespace

}  // namespace tenon::sequences

const tn_plugin* tenon_plugin() { return tn::entry<tenon::sequences::describe>(); }

// Sequences as dense tensors with a mask, and back. SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>
#include <vector>

#include "ranges.h"
#include "sequences.h"

namespace tenon::sequences {

namespace {

using tn::Float;
using tn::Int;

// For each row of sequences: begin(sample) + its position, where sample s begins at s * stride and positions from
// `most` on count as `most`. int64 [rows].
tn::Tensor places(tn::Builder& body, const tn::Dim& rows, int64_t stride, int64_t most) {
  tn::Program begin;
  begin.per_row<Int>();  // gives the grid its rows
  begin.output(begin.row() * stride);
  const tn::Tensor begins = body.pointwise(begin, {body.segment(TN_SEGMENT_LENGTH, rows)}).front();
  tn::Program place;
  const Int first = place.per_row<Int>();
  const Int position = place.per_row<Int>();
  place.output(first + select(position < most, position, Int(most)));
  return body
      .pointwise(place, {body.segment(TN_SEGMENT_BROADCAST, begins, rows), body.segment(TN_SEGMENT_POSITION, rows)})
      .front();
}

tn::Spec one_level(const tn::Planner& planner, uint32_t port) {
  tn::Spec spec = ragged_input(planner, port);
  if (spec.levels() != 1) throw planner.bad_input(port, "has sequences of sequences", TN_UNSUPPORTED);
  return spec;
}

struct SequencePad : tn::DeclaresNumbers<SequencePad> {
  static void describe(tn::LayerDescription& d) {
    d.type(
        "sequence_pad",
        "Sequences as a dense tensor of one length: shorter ones end with zeros, of longer ones the rows from length "
        "on are left out. The mask tells rows from padding.");
    d.input("input", "[rows, ...]: sequences");
    d.output("output", "[samples, length, ...]");
    d.output("mask", "[samples, length]: 1 for a row, 0 for padding. Without a derivative");
    d.attribute(tn::int_attribute("length").required().at_least(1).doc("rows of each sample"));
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec input = one_level(planner, 0);
    const int64_t length = planner.attributes().integer("length");
    if (input.rank() == TN_MAX_RANK) throw planner.bad_input(0, "has too many dimensions for one more");
    planner.elements(0, 1);
    tn::Spec output({input.outer(0), length});
    for (int32_t i = 1; i < input.rank(); ++i) output.push_back(input[i]);
    planner.output(0, output);
    planner.output(1, tn::Spec({input.outer(0), length}));
  }
  static void numbers(tn::NumberDeclarer& declarer) { declarer.output(1, tn::Numbers::zero_or_one()); }

  // A sample has length + 1 places, of which the last one takes the rows that are left out.
  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor input = body.input(0);
    const tn::Spec shape = input.spec();
    const int64_t length = attributes.integer("length");
    const tn::Dim samples = shape.outer(0);
    const tn::Tensor placed =
        body.scatter_add(input, places(body, shape[0], length + 1, length), samples.times(length + 1));
    tn::Spec wide({samples, length + 1});
    for (int32_t i = 1; i < shape.rank(); ++i) wide.push_back(shape[i]);
    body.output(0, body.slice(placed.view(wide), 1, 0, length));

    tn::Program compare;
    const Int rows = compare.per_row<Int>();
    const Float zero = compare.per_column();  // gives the grid its columns
    compare.output(select(compare.column() < rows, Float(1.0), zero));
    const tn::Tensor zeros = body.constant(tn::Spec({length}), std::vector<double>(static_cast<size_t>(length), 0.0));
    body.output(1, body.pointwise(compare, {body.segment(TN_SEGMENT_LENGTH, shape[0]), zeros}).front());
  }
};

struct SequenceUnpad {
  static void describe(tn::LayerDescription& d) {
    d.type("sequence_unpad",
           "The rows of a dense tensor as sequences, without padding: sample i gets as many rows as its sequence of "
           "\"like\" has, without \"like\" all. Rows beyond those of the input are 0.");
    d.input("input", "[samples, length, ...]");
    d.input("like", "[rows, ...]: the sequences; their values are not read", TN_PORT_ANY | TN_PORT_OPTIONAL);
    d.output("output", "[rows, ...]: rows as \"like\" has, each as those of the input");
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec input = planner.input(0);
    const bool alike = planner.has_input(1);
    if (input.rank() < 2 || input.is_ragged() || (alike && !input[0].same(one_level(planner, 1).outer(0))))
      throw planner.bad_input(
          0, std::string("must be [samples, length, ...]") + (alike ? " with the samples of \"like\"" : ""));
    planner.elements(0, 1);
    tn::Spec output({alike ? planner.input(1)[0] : planner.data_rows(0, input[0].times(input[1].offset))});
    for (int32_t i = 2; i < input.rank(); ++i) output.push_back(input[i]);
    planner.output(0, output);
  }

  // All rows are counted by a native kernel.
  static void lower(const tn::Attributes&, tn::Builder& body) {
    const std::optional<tn::Tensor> like = body.optional_input(1);
    if (!like)
      throw tn::Failure(TN_UNSUPPORTED, "like", "is needed on devices without a native kernel of sequence_unpad");
    const tn::Tensor input = body.input(0);
    const tn::Spec shape = input.spec();
    const int64_t length = shape[1].offset;
    const tn::Dim rows = like->spec()[0];
    tn::Spec table({shape[0].times(length)});
    for (int32_t i = 2; i < shape.rank(); ++i) table.push_back(shape[i]);
    const tn::Tensor read = body.gather(input.view(table), places(body, rows, length, length - 1));
    tn::Program keep;
    const Float row = keep.full();
    keep.output(select(keep.per_row<Int>() < length, row, 0.0));
    body.output(0, body.pointwise(keep, {read, body.segment(TN_SEGMENT_POSITION, rows)}).front());
  }
};

// All rows of each sample, for sequence_unpad without "like".
class AllRows {
 public:
  static void describe(tn::KernelDescription& d) {
    d.kernel("sequence_unpad", "cpu", "sequence_rows", 10);
    d.portable();
  }
  static bool supports(const tn::KernelSite& site) { return !site.has_input(1); }

  explicit AllRows(const tn::KernelSite& site) : samples_(site.input(0)[0]), length_(site.input(0)[1].offset) {}
  int64_t sequences(const tn::Call& call) const { return call.size(samples_); }
  int64_t rows(const tn::Call& call) const { return call.size(samples_) * length_; }
  Range at(const tn::Call&, int64_t sequence) const { return {sequence * length_, (sequence + 1) * length_}; }

 private:
  tn::Dim samples_;
  int64_t length_;
};

}  // namespace

void add_padding(tn::Plugin& plugin) {
  plugin.layer<SequencePad>();
  plugin.layer<SequenceUnpad>();
  plugin.kernel(tn::kernel<RangesKernel<AllRows>>());
}

}  // namespace tenon::sequences

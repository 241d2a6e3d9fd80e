// Segment: primitives over the segments of ragged dimensions.
// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"
#include "core/graph/differentiator.h"

namespace tenon::core {

// `rows` is a ragged dimension with R rows in S segments (RaggedDim::outer); its offsets are int64 [S + 1].
//   SUM, MAX       float [R, W...]; out [S, W...]
//   BROADCAST      [S, W...]; out [R, W...]
//   SHIFT          [R, W...]; out [R, W...]
//   RANK           float [R]; out int64 [R]
//   POSITION       without a value; out int64 [R]
//   LENGTH, START  without a value; out int64 [S]
ValueId GraphWriter::segment(int32_t op, ValueId value, const Dim& rows, int64_t by) {
  const auto known = graph_.rows.find(rows.symbol);
  if (known == graph_.rows.end() || rows.coefficient != 1 || rows.offset != 0)
    fail(TN_INVALID, "segment: ", to_string(rows), " is not a ragged dimension");
  const RaggedDim& of = known->second;
  const auto require = [&](const Dim& first) {
    if (value == kNoValue) fail(TN_INVALID, "segment: this operation needs a value");
    const Spec& spec = graph_.spec(value);
    if (spec.shape.empty() || !same(spec.shape[0], first))
      fail(TN_INVALID, "segment: expected a value of [", to_string(first), ", ...], got ", to_string(spec));
  };
  const auto with_first = [&](const Dim& first) {
    Spec result{graph_.spec(value).dtype, graph_.spec(value).shape, TN_DENSE, 0, {}};  // a feed may be ragged
    result.shape[0] = first;
    return result;
  };
  Spec result;
  switch (op) {
    case TN_SEGMENT_SUM:
    case TN_SEGMENT_MAX:
      require(rows);
      if (!is_float(graph_.spec(value).dtype))
        fail(TN_INVALID, "segment: expected floats, got ", to_string(graph_.spec(value)));
      result = with_first(of.outer);
      break;
    case TN_SEGMENT_BROADCAST:
      require(of.outer);
      result = with_first(rows);
      break;
    case TN_SEGMENT_SHIFT:
      require(rows);
      result = with_first(rows);
      break;
    case TN_SEGMENT_RANK:
      require(rows);
      if (graph_.spec(value).shape.size() != 1 || !is_float(graph_.spec(value).dtype))
        fail(TN_INVALID, "segment: ranks are of one float for each row, got ", to_string(graph_.spec(value)));
      result = {TN_I64, {rows}, TN_DENSE, 0, {}};
      break;
    case TN_SEGMENT_POSITION:
      result = {TN_I64, {rows}, TN_DENSE, 0, {}};
      break;
    case TN_SEGMENT_LENGTH:
    case TN_SEGMENT_START:
      result = {TN_I64, {of.outer}, TN_DENSE, 0, {}};
      break;
    default:
      fail(TN_INVALID, "segment: unknown operation ", op);
  }
  const bool takes_none = op == TN_SEGMENT_POSITION || op == TN_SEGMENT_LENGTH || op == TN_SEGMENT_START;
  append(Segment{op, rows, by}, {takes_none ? kNoValue : value, of.offsets});
  return output(std::move(result));
}

namespace {

// Returns the gradient [R, W...] of a maximum over segments from `given` [S, W...], the gradient of the result: the
// rows that are equal to the maximum of their segment share it equally.
ValueId largest(GraphWriter& write, const Node& node, const Dim& rows, ValueId given) {
  const ValueId most = write.segment(TN_SEGMENT_BROADCAST, node.outputs[0], rows, 0);
  ProgramWriter marks;
  const int32_t equal = marks.apply(TN_OP_EQUAL, marks.input(TN_FULL), marks.input(TN_FULL));
  marks.output(marks.apply(TN_OP_SELECT, equal, marks.constant(1), marks.constant(0)));
  const ValueId marked = write.pointwise(std::make_shared<Program>(marks.finish()), {node.inputs[0], most}, 1)[0];
  const ValueId count = write.segment(TN_SEGMENT_SUM, marked, rows, 0);
  ProgramWriter share;
  const int32_t gradient = share.input(TN_FULL);
  share.output(share.apply(TN_OP_DIV, gradient, share.apply(TN_OP_MAX, share.input(TN_FULL), share.constant(1))));
  const ValueId shared = write.pointwise(std::make_shared<Program>(share.finish()), {given, count}, 1)[0];
  ProgramWriter product;
  product.output(product.apply(TN_OP_MUL, product.input(TN_FULL), product.input(TN_FULL)));
  const ValueId spread = write.segment(TN_SEGMENT_BROADCAST, shared, rows, 0);
  return write.pointwise(std::make_shared<Program>(product.finish()), {marked, spread}, 1)[0];
}

}  // namespace

// The gradient of a sum is a broadcast, that of a broadcast a sum, that of a shift by n a shift by -n; `largest` has
// that of a maximum. The ops with integer results have no gradient.
void Segment::derive(Differentiator& gradients, const Node& node) const {
  const ValueId x = node.inputs[0];
  if (x == kNoValue || !gradients.needed(x)) return;
  const ValueId given = gradients.gradient(node.outputs[0]);
  GraphWriter write = gradients.writer(node.layer);
  switch (op) {
    case TN_SEGMENT_SUM:
      return gradients.add(x, write.segment(TN_SEGMENT_BROADCAST, given, rows, 0), node.layer);
    case TN_SEGMENT_BROADCAST:
      return gradients.add(x, write.segment(TN_SEGMENT_SUM, given, rows, 0), node.layer);
    case TN_SEGMENT_SHIFT:
      return gradients.add(x, write.segment(TN_SEGMENT_SHIFT, given, rows, -by), node.layer);
    case TN_SEGMENT_MAX:
      return gradients.add(x, largest(write, node, rows, given), node.layer);
    default:
      return;
  }
}

}  // namespace tenon::core

// Primitives that move elements: concat, slice, pad, transpose.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "core/graph/differentiator.h"

namespace tenon::core {

namespace {

// Returns the part that copies a whole tensor of `shape` to the same indices.
MovePart whole(uint32_t input, const Shape& shape) {
  MovePart part;
  part.input = input;
  part.box = shape;
  part.from.assign(shape.size(), 0);
  part.to.assign(shape.size(), 0);
  part.axes.resize(shape.size());
  std::iota(part.axes.begin(), part.axes.end(), 0);
  return part;
}

// Returns the size along `axis`. Throws TN_UNSUPPORTED if it is symbolic.
int64_t size_along(const char* what, const Spec& spec, int32_t axis) {
  if (axis < 0 || static_cast<size_t>(axis) >= spec.shape.size())
    fail(TN_INVALID, what, " of ", to_string(spec), ": there is no axis ", axis);
  const Dim& dim = spec.shape[static_cast<size_t>(axis)];
  if (dim.symbol != TN_SYMBOL_NONE)
    fail(TN_UNSUPPORTED, what, " of ", to_string(spec), " along axis ", axis, ", which varies");
  return dim.offset;
}

bool equal_but_for(const Shape& a, const Shape& b, size_t axis) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (i != axis && !same(a[i], b[i])) return false;
  return true;
}

}  // namespace

// Boxes of inputs copied into one output of `shape`; elements have the type of the first input.
ValueId GraphWriter::move(Move move, std::vector<ValueId> inputs, Shape shape) {
  const tn_dtype dtype = graph_.spec(inputs[0]).dtype;
  append(std::move(move), std::move(inputs));
  return output({dtype, std::move(shape), TN_DENSE, 0, {}});
}

// values [A..., n_i, B...] with the sizes n_i along `axis`; out [A..., sum of n_i, B...]
ValueId GraphWriter::concat(const std::vector<ValueId>& values, int32_t axis) {
  if (values.empty()) fail(TN_INVALID, "concat of nothing");
  const Spec first = graph_.spec(values[0]);
  Move parts;
  int64_t length = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const Spec& spec = graph_.spec(values[i]);
    const int64_t size = size_along("concat", spec, axis);
    const auto at = static_cast<size_t>(axis);
    if (spec.dtype != first.dtype || !equal_but_for(spec.shape, first.shape, at))
      fail(TN_INVALID, "concat along axis ", axis, " of ", to_string(first), " and ", to_string(spec));
    parts.parts.push_back(whole(static_cast<uint32_t>(i), spec.shape));
    parts.parts.back().to[at] = length;
    if (__builtin_add_overflow(length, size, &length)) fail(TN_INVALID, "concat along axis ", axis, " is too long");
  }
  Shape shape = first.shape;
  shape[static_cast<size_t>(axis)] = tn_dim_constant(length);
  return move(std::move(parts), values, std::move(shape));
}

// value [A..., n, B...] with the size n along `axis`; out [A..., length, B...]: elements start to start + length - 1
ValueId GraphWriter::slice(ValueId value, int32_t axis, int64_t start, int64_t length) {
  const Spec spec = graph_.spec(value);
  const int64_t size = size_along("slice", spec, axis);
  if (start < 0 || length < 0 || start > size || length > size - start)
    fail(TN_INVALID, "slice of ", to_string(spec), " along axis ", axis, ": ", length, " elements from ", start,
         " on of ", size);
  MovePart part = whole(0, spec.shape);
  const auto at = static_cast<size_t>(axis);
  part.box[at] = tn_dim_constant(length);
  part.from[at] = start;
  Shape shape = part.box;
  return move({{std::move(part)}, false}, {value}, std::move(shape));
}

// value [A..., n, B...] with the size n along `axis`; out [A..., before + n + after, B...]: zeros before and after
ValueId GraphWriter::pad(ValueId value, int32_t axis, int64_t before, int64_t after) {
  const Spec spec = graph_.spec(value);
  const int64_t size = size_along("pad", spec, axis);
  constexpr int64_t kMost = int64_t{1} << 60;
  if (before < 0 || after < 0 || before > kMost || after > kMost || size > kMost)
    fail(TN_INVALID, "pad of ", to_string(spec), " by ", before, " and ", after);
  MovePart part = whole(0, spec.shape);
  const auto at = static_cast<size_t>(axis);
  part.to[at] = before;
  Shape shape = spec.shape;
  shape[at] = tn_dim_constant(before + size + after);
  return move({{std::move(part)}, true}, {value}, std::move(shape));
}

// value [d_0, d_1, ...]; out [d_axes[0], d_axes[1], ...]
ValueId GraphWriter::transpose(ValueId value, const std::vector<int32_t>& axes) {
  const Spec spec = graph_.spec(value);
  MovePart part = whole(0, spec.shape);
  std::vector<int32_t> sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != part.axes)
    fail(TN_INVALID, "transpose of ", to_string(spec), ": the axes are not a permutation of its ", spec.shape.size(),
         " dimensions");
  Shape shape;
  for (size_t i = 0; i < axes.size(); ++i) {
    part.axes[static_cast<size_t>(axes[i])] = static_cast<int32_t>(i);
    shape.push_back(spec.shape[static_cast<size_t>(axes[i])]);
  }
  return move({{std::move(part)}, false}, {value}, std::move(shape));
}

// The move in the opposite direction: copies the box of `gradient` back to `input`'s place, with inverted axes.
//   gradient: the shape of the move's output; out: the shape of `input`
ValueId GraphWriter::move_back(const MovePart& part, ValueId input, ValueId gradient) {
  const Shape shape = graph_.spec(input).shape;
  MovePart back;
  back.box.resize(shape.size());
  back.axes.resize(shape.size());
  for (size_t i = 0; i < shape.size(); ++i) {
    back.box[static_cast<size_t>(part.axes[i])] = part.box[i];
    back.axes[static_cast<size_t>(part.axes[i])] = static_cast<int32_t>(i);
  }
  back.from = part.to;
  back.to = part.from;
  bool covers = true;
  for (size_t i = 0; i < shape.size(); ++i) covers = covers && same(part.box[i], shape[i]);
  return move({{std::move(back)}, !covers}, {gradient}, shape);
}

void Move::derive(Differentiator& gradients, const Node& node) const {
  const ValueId given = gradients.gradient(node.outputs[0]);
  for (const MovePart& part : parts) {
    const ValueId input = node.inputs[part.input];
    if (gradients.needed(input))
      gradients.add(input, gradients.writer(node.layer).move_back(part, input, given), node.layer);
  }
}

}  // namespace tenon::core

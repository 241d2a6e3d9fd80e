// SPDX-License-Identifier: Apache-2.0
#include "broadcast.h"

#include <algorithm>

namespace tenon::arithmetic {

namespace {

// The dimensions of a sample of `value` as those of `rank` dimensions, with ones in front.
std::vector<tn::Dim> aligned(const tn::Spec& value, int32_t rank) {
  std::vector<tn::Dim> dims{value[0]};
  for (int32_t i = value.rank(); i < rank; ++i) dims.emplace_back(1);
  for (int32_t i = 1; i < value.rank(); ++i) dims.push_back(value[i]);
  return dims;
}

bool repeats(const tn::Dim& own, const tn::Dim& result) { return own.same(1) && !result.same(1); }

// The first dimension from which on a value with these dimensions repeats along all; `rank` if there is none.
int32_t repeats_from(const std::vector<tn::Dim>& own, const tn::Spec& result) {
  int32_t from = result.rank();
  for (int32_t i = result.rank() - 1; i > 0 && own[static_cast<size_t>(i)].same(1); --i)
    if (!result[i].same(1)) from = i;
  return from;
}

// `value`, which has the dimensions `own`, repeated to the first `rank` dimensions of `result`.
tn::Tensor repeated(tn::Builder& body, const tn::Tensor& value, const std::vector<tn::Dim>& own, const tn::Spec& result,
                    int32_t rank) {
  // Each number becomes a row of equal ones; then the repeated dimensions move to their places.
  tn::Spec kept({result[0]}), all({result[0]}), rows;
  std::vector<int32_t> kept_at{0}, repeated_at;
  int64_t times = 1;
  for (int32_t i = 1; i < rank; ++i) {
    const bool here = repeats(own[static_cast<size_t>(i)], result[i]);
    (here ? repeated_at : kept_at).push_back(i);
    if (here) times *= result[i].offset;
    if (!here) kept.push_back(result[i]), all.push_back(result[i]);
  }
  for (const int32_t i : repeated_at) all.push_back(result[i]);
  tn::Program program;
  const tn::Float number = program.per_row();
  program.output(select(program.column() < 0, program.per_column(), number));
  const std::vector<double> zeros(static_cast<size_t>(times), 0);
  const std::vector<tn::Tensor> operands{value.view(kept), body.constant(tn::Spec({times}), zeros)};
  const tn::Tensor wide = body.pointwise(program, operands, kept.rank()).front().view(all);
  std::vector<int32_t> order(static_cast<size_t>(rank));
  int32_t next = 0;
  for (const int32_t i : kept_at) order[static_cast<size_t>(i)] = next++;
  for (const int32_t i : repeated_at) order[static_cast<size_t>(i)] = next++;
  return std::is_sorted(order.begin(), order.end()) ? wide : body.transpose(wide, order);
}

}  // namespace

tn::Tensor broadcast_to(tn::Builder& body, const tn::Tensor& value, const tn::Spec& shape) {
  const std::vector<tn::Dim> own = aligned(value.spec(), shape.rank());
  bool whole = true;
  for (int32_t i = 1; i < shape.rank(); ++i) whole = whole && !repeats(own[static_cast<size_t>(i)], shape[i]);
  return whole ? value.view(shape) : repeated(body, value, own, shape, shape.rank());
}

tn::Spec broadcast_shape(const tn::Planner& planner) {
  tn::Spec result = planner.input(0).as(TN_COMPUTE);
  if (result.rank() == 0) throw planner.bad_input(0, "must have a dimension for the samples");
  for (uint32_t i = 1; i < planner.inputs_count(); ++i) {
    const tn::Spec next = planner.input(i);
    if (next.rank() == 0) throw planner.bad_input(i, "must have a dimension for the samples");
    const int32_t rank = std::max(result.rank(), next.rank());
    const std::vector<tn::Dim> before = aligned(result, rank), own = aligned(next, rank);
    tn::Spec joined = result.leading(1);
    bool fits = before[0].same(own[0]);
    for (size_t k = 1; k < before.size(); ++k) {
      const bool repeated = (before[k].same(1) && own[k].is_constant()) || (own[k].same(1) && before[k].is_constant());
      fits = fits && (before[k].same(own[k]) || repeated);
      joined.push_back(before[k].same(1) ? own[k] : before[k]);
    }
    if (!fits)
      throw planner
          .bad_input(i, "input " + std::to_string(i) + ", from 0, cannot be broadcast to the shape of those before it")
          .expected(result);
    result = joined;
  }
  return result;
}

Operands broadcast(tn::Builder& body, std::vector<tn::Tensor> inputs) {
  Operands operands;
  operands.shape = inputs[0].spec().as(TN_COMPUTE);
  for (const tn::Tensor& input : inputs) {
    const tn::Spec spec = input.spec();
    const int32_t rank = std::max(operands.shape.rank(), spec.rank());
    const std::vector<tn::Dim> before = aligned(operands.shape, rank), own = aligned(spec, rank);
    tn::Spec joined = operands.shape.leading(1);
    for (size_t k = 1; k < own.size(); ++k) joined.push_back(before[k].same(1) ? own[k] : before[k]);
    operands.shape = joined;
  }
  const tn::Spec& shape = operands.shape;
  for (const tn::Tensor& input : inputs) {
    if (input.spec().same_shape(shape)) continue;
    operands.plain = false;
    const int32_t from = repeats_from(aligned(input.spec(), shape.rank()), shape);
    if (from < shape.rank()) operands.leading = std::max(operands.leading, from);
  }
  for (tn::Tensor& input : inputs) {
    const std::vector<tn::Dim> own = aligned(input.spec(), shape.rank());
    const bool full = repeats_from(own, shape) == shape.rank();
    const int32_t rank = full ? shape.rank() : operands.leading;
    bool whole = true;  // nothing is repeated in the first `rank` dimensions
    for (int32_t i = 1; i < rank; ++i) whole = whole && !repeats(own[static_cast<size_t>(i)], shape[i]);
    if (!whole)
      input = repeated(body, input, own, shape, rank);
    else if (!input.spec().same_shape(shape.leading(rank)))
      input = input.view(shape.leading(rank));
    operands.is_full.push_back(full);
  }
  operands.values = std::move(inputs);
  return operands;
}

}  // namespace tenon::arithmetic

// One axis of a sample: its checks, and its way to the last dimension and back. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <tenon/plugin.hpp>
#include <utility>
#include <vector>

namespace tenon::order {

inline tn::Attribute axis_attribute() {
  return tn::int_attribute("axis", -1).doc("dimension; negative ones count from the end. Not 0, the samples");
}

// The number of the dimension `axis` of a value with `rank` dimensions.
inline int32_t axis_in(const tn::Attributes& attributes, int32_t rank) {
  const int64_t axis = attributes.integer("axis");
  return static_cast<int32_t>(axis < 0 ? axis + rank : axis);
}

// Returns the axis of input `port`, whose dimensions but the first are constant and not 0.
inline int32_t checked_axis(const tn::Planner& planner, uint32_t port) {
  const tn::Spec input = planner.input(port);
  const int64_t given = planner.attributes().integer("axis");
  const int64_t axis = given < 0 ? given + input.rank() : given;
  if (axis == 0 && input.rank() > 0)
    throw planner.bad_input(port, input.rank() == 1 ? "has no dimension besides the samples"
                                                    : "has the samples along axis " + std::to_string(given));
  if (axis < 0 || axis >= input.rank()) throw planner.bad_input(port, "has no axis " + std::to_string(given));
  planner.elements(port, 1);
  return static_cast<int32_t>(axis);
}

// `spec` with another size of one dimension.
inline tn::Spec resized(const tn::Spec& spec, int32_t axis, int64_t size) {
  tn::Spec result = spec.leading(axis);
  result.push_back(size);
  for (int32_t i = axis + 1; i < spec.rank(); ++i) result.push_back(spec[i]);
  return result;
}

// Exchanges an axis and the last dimension.
inline tn::Tensor exchanged(tn::Builder& body, const tn::Tensor& value, int32_t axis) {
  const int32_t last = value.spec().rank() - 1;
  if (axis == last) return value;
  std::vector<int32_t> order;
  for (int32_t i = 0; i <= last; ++i) order.push_back(i);
  std::swap(order[static_cast<size_t>(axis)], order.back());
  return body.transpose(value, order);
}

// Elements of each row of values [R..., n] by their positions, integers [R..., m]: [R..., m]. A position outside of
// [0, n) ends the step with TN_BAD_DATA.
tn::Tensor elements_at(tn::Builder& body, const tn::Tensor& values, const tn::Tensor& positions);

void add_sorting(tn::Plugin& plugin);
void add_indexing(tn::Plugin& plugin);

}  // namespace tenon::order

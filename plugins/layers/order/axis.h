// One axis of a sample: its checks, and its way to the last dimension and back. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <tenon/plugin.hpp>

namespace tenon::order {

inline tn::Attribute axis_attribute() {
  return tn::int_attribute("axis", -1).doc("dimension; negative ones count from the end. Not 0, the samples");
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

// Exchanges an axis and the last dimension.
inline tn::Tensor exchanged(tn::Builder& body, const tn::Tensor& value, int32_t axis) {
  return body.exchange(value, axis, value.spec().rank() - 1);
}

// Elements of each row of values [R..., n] by their positions, integers [R..., m]: [R..., m]. A position outside of
// [0, n) ends the step with TN_BAD_DATA.
tn::Tensor elements_at(tn::Builder& body, const tn::Tensor& values, const tn::Tensor& positions);

void add_sorting(tn::Plugin& plugin);
void add_indexing(tn::Plugin& plugin);

}  // namespace tenon::order

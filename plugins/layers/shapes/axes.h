// Axes of a sample, and the layers of the other files. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <tenon/plugin.hpp>
#include <vector>

namespace tenon::shapes {

// The number of dimension `axis` of an input; a negative axis counts from the end. Throws for dimension 0, the samples,
// and for axes that do not exist.
inline int32_t axis_of(const tn::Planner& planner, uint32_t input, int64_t axis) {
  const int32_t rank = planner.input(input).rank();
  const int64_t from_start = axis < 0 ? axis + rank : axis;
  if (from_start < 1 || from_start >= rank)
    throw planner.bad_input(input, "has no axis " + std::to_string(axis) + " after the samples");
  return static_cast<int32_t>(from_start);
}
// The same without checks.
inline int32_t axis_in(const tn::Spec& spec, int64_t axis) {
  return static_cast<int32_t>(axis < 0 ? axis + spec.rank() : axis);
}

// The dimensions that the attribute `axes` of a layer names of its input 0, in the order of the attribute, which is
// neither empty nor names one twice; all dimensions of a sample if it is absent.
std::vector<int32_t> checked_axes(const tn::Planner& planner);
// The same without checks.
std::vector<int32_t> axes_in(const tn::Attributes& attributes, const tn::Spec& spec);

inline int64_t length_of(const tn::Planner& planner, uint32_t input, int32_t axis) {
  const tn::Dim dim = planner.input(input)[axis];
  if (!dim.is_constant()) throw planner.bad_input(input, "varies along axis " + std::to_string(axis));
  return dim.offset;
}

inline tn::Spec with_length(const tn::Spec& spec, int32_t axis, int64_t length) {
  tn::Spec result({}, spec.dtype());
  for (int32_t i = 0; i < spec.rank(); ++i) result.push_back(i == axis ? tn::Dim(length) : spec[i]);
  return result;
}

// squeeze, unsqueeze, stack, unstack.
void add_dimensions(tn::Plugin& plugin);
// flip, roll, tile, repeat, pad.
void add_positions(tn::Plugin& plugin);

}  // namespace tenon::shapes

// Axes of a sample, and the layers of the other files. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <tenon/plugin.hpp>
#include <vector>

namespace tenon::shapes {

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

// squeeze, unsqueeze, stack, unstack.
void add_dimensions(tn::Plugin& plugin);
// flip, roll, tile, repeat, pad.
void add_positions(tn::Plugin& plugin);

}  // namespace tenon::shapes

// Places the values of a graph in one arena. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/graph/graph.h"

namespace tenon::host {

using namespace core;

// The places of the values of a graph in the arena.
struct MemoryPlan {
  static constexpr uint64_t kNotHere = ~uint64_t{0};
  std::vector<uint64_t> offsets;  // per value, from the start of the arena; kNotHere for values with other memory
  uint64_t bytes = 0;             // of the arena
  uint64_t live_bound = 0;        // largest sum of bytes that are live at one node: a lower bound of every plan
};

// placed[value]: the value has memory of its own (a feed, a parameter, a gradient). kept: values that must stay
// readable after the last node. A value is live from its node to the last node that reads it or a view of it; a value
// that a loop reads or makes is live during the whole loop, unless it lives within one step. An output
// of a pointwise node reuses the memory of an input of equal extent and size that no later node reads; likewise an
// output of an epilogue that of the matrix product.
[[nodiscard]] MemoryPlan plan_memory(const Graph& graph, const std::vector<bool>& placed,
                                     const std::vector<ValueId>& kept, const std::vector<int64_t>& bounds);

// Returns the bytes of a value at the bounds, rounded up to whole cache lines. Throws TN_INVALID if it has no bound.
[[nodiscard]] uint64_t bytes_of(const Spec& spec, const std::vector<int64_t>& bounds);
// Returns the bounds of the sizes within a step of an order, given by its number. whole: those outside of it.
[[nodiscard]] std::vector<int64_t> bounds_within(const Graph& graph, int32_t number, const std::vector<int64_t>& whole);

}  // namespace tenon::host

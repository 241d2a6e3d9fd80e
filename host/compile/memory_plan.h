// Places in one arena for the values of a graph. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/graph/graph.h"

namespace tenon {

// Where the values of a graph lie in the arena.
struct MemoryPlan {
  static constexpr uint64_t kNotHere = ~uint64_t{0};
  std::vector<uint64_t> offsets;  // per value, from the start of the arena; kNotHere for values with other memory
  uint64_t bytes = 0;             // of the arena
  uint64_t live_bound = 0;        // the most that is live at one moment: no plan can need less
};

// placed[value]: it has memory of its own (a feed, a parameter, a gradient). kept: must stay readable after the last
// node. A value lives from its node to the last one that reads it or a view of it; what a pointwise node reads for the
// last time gives its memory to an output of equal extent and size.
[[nodiscard]] MemoryPlan plan_memory(const Graph& graph, const std::vector<bool>& placed,
                                     const std::vector<ValueId>& kept, const std::vector<int64_t>& bounds);

// Bytes of a value at the bounds, rounded up to whole cache lines.
[[nodiscard]] uint64_t bytes_of(const Spec& spec, const std::vector<int64_t>& bounds);

}  // namespace tenon

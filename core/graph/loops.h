// The loops of a graph. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/graph/graph.h"

namespace tenon::core {

// Returns the order whose steps are the first dimension of a value; null if there is none.
[[nodiscard]] const StepOrder* order_of(const Graph& graph, ValueId value);

// Returns the number of the first Memory of a loop.
[[nodiscard]] size_t first_memory(const Graph& graph, int32_t loop);

// Throws naming the operation if a node that must run step by step relates different steps, or is of a kind that
// cannot. Call it when all memories of the loop have ended.
void check_loop(const Graph& graph, int32_t loop);

// Lays out the loops: finds the nodes that lie on a way from a memory to what is left in one, puts the nodes that they
// do not depend on before the loop and the others behind it, and places what memories find and leave into states.
// Run after differentiate, before fuse.
void arrange_loops(Graph& graph);

// Returns by value the loop in which a value lives within one step; -1: it has memory for all of its elements. Only
// roots count. kept: values that are read after the last node.
[[nodiscard]] std::vector<int32_t> values_of_steps(const Graph& graph, const std::vector<ValueId>& kept);

}  // namespace tenon::core

// The loops of a graph. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace tenon::core {

// Returns the order whose steps are the first dimension of a value; null if there is none.
[[nodiscard]] const StepOrder* order_of(const Graph& graph, ValueId value);

// Returns the rows that the steps of an order see of further sequences, if these are the first dimension of a value;
// null if they are not.
[[nodiscard]] const StepRows* step_rows_of(const Graph& graph, ValueId value);

// Returns the order within whose steps a nested order lies; -1 for one that is not nested.
[[nodiscard]] int32_t order_around(const Graph& graph, int32_t order);

// Returns the loop that no loop is around: `loop`, or one around it; -1 for -1. Run after arrange_loops.
[[nodiscard]] int32_t outermost_loop(const Graph& graph, int32_t loop);

// Returns the first symbol that orders of steps and rows that steps see do not use, if `first` was free before them.
[[nodiscard]] int32_t next_symbol(const Graph& graph, int32_t first);

// Returns the number of the first Memory of a loop.
[[nodiscard]] size_t first_memory(const Graph& graph, int32_t loop);

// A node that must run step by step, and why it cannot, such as "relates different steps".
struct LoopFault {
  int32_t layer = -1;
  const char* operation = "";
  std::string reason;  // empty: there is no fault
};
// Completes a loop whose memories have all ended: what its steps draw is drawn before it, for all steps. Returns the
// first node that relates different steps, or is of a kind that cannot run step by step.
[[nodiscard]] LoopFault end_loop(Graph& graph, int32_t loop);

// Lays out the loops: finds the nodes that lie on a way from a memory to what is left in one, puts the nodes that they
// do not depend on before the loop and the others behind it, and places what memories find and leave into states. A
// loop of a nested order that lies on such a way runs within the steps of the outer one, among the nodes of which the
// same arrangement then finds its own. Run after differentiate, before fuse.
void arrange_loops(Graph& graph);

// Returns by value the loop in which a value lives within one step; -1: it has memory for all of its elements. Only
// roots count. kept: values that are read after the last node.
[[nodiscard]] std::vector<int32_t> values_of_steps(const Graph& graph, const std::vector<ValueId>& kept);

}  // namespace tenon::core

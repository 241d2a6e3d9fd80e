// Which nodes of a loop run step by step. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace tenon::core {

// The nodes of a loop, from its first Memory to its last LastStep.
struct LoopRange {
  size_t first = 0, last = 0;
  std::vector<bool> depends;   // per value: it depends on what a memory finds
  std::vector<bool> stepwise;  // per node from `first` on: it must run step by step
};

// Returns the nodes that depend on what a memory finds, and on which depends what is left in one.
[[nodiscard]] LoopRange range_of(const Graph& graph, int32_t loop);

// Adds the sums over steps of gradients of whole sequences that steps see, and what they are computed from: within the
// loop they add to the first rows of one value, and no value of all steps needs memory.
void take_sums(const Graph& graph, int32_t loop, LoopRange& range);

// Lets nodes that run step by step read what they draw from values of all steps, which are drawn before node `first`: a
// draw counts the elements of its grid, so that it would be the same at each step. stepwise: per node from `first` on.
void hoist_draws(Graph& graph, size_t first, const std::vector<bool>& stepwise);

// Whether a node depends on what a memory of the loop finds. The memories of a loop inside do so together.
[[nodiscard]] bool depends_on_memory(const Node& node, const LoopRange& range);

// Whether one of the values is marked.
[[nodiscard]] bool any(const std::vector<ValueId>& values, const std::vector<bool>& marked);

// Returns the loop whose memory or last step a node is; -1: none.
[[nodiscard]] int32_t loop_of_end(const Node& node);

// Returns why a node cannot run at the steps of an order; "" if it can.
[[nodiscard]] std::string step_refusal(const Graph& graph, const Node& node, int32_t order);

}  // namespace tenon::core

// Draws of loops. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/graph/graph.h"

namespace tenon::core {

// Lets nodes that run step by step read what they draw from values of all steps, which are drawn before node `first`: a
// draw counts the elements of its grid, so that it would be the same at each step. stepwise: per node from `first` on.
void hoist_draws(Graph& graph, size_t first, const std::vector<bool>& stepwise);

}  // namespace tenon::core

// A graph as text, for the messages of tests. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/graph/graph.h"

namespace tenon_tests {

using namespace tenon::core;

// One line for each node.
[[nodiscard]] std::string text_of(const Graph& graph);

}  // namespace tenon_tests

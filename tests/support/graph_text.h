// A graph as text, for the messages of tests. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/graph/graph.h"

namespace tenon::test {

// One line for each node.
[[nodiscard]] std::string text_of(const Graph& graph);

}  // namespace tenon::test

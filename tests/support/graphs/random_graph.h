// Random primitive graphs of the kind that layers record, with what is fed to them. One seed gives one graph, and fewer
// steps of the same seed its beginning. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "core/graph/graph.h"
#include "tests/support/graphs/graph_interpreter.h"

namespace tenon_tests {

using namespace tenon::core;

struct RandomGraph {
  Graph graph;
  std::vector<int64_t> symbols, bounds;  // sizes, and the largest that memory is planned for
  std::map<ValueId, Numbers> given;      // what comes from outside
  std::vector<ValueId> kept;
  bool smooth = false;  // made of differentiable functions alone, in fp64
  // Of a training; else none.
  std::vector<ValueId> costs;         // values of which backward begins
  std::vector<ValueId> wanted;        // values whose gradients are asked for
  std::map<ValueId, ValueId> stored;  // those of them that are made of a parameter in fp32, and that
  std::set<ValueId> row_sparse;       // among them, those whose gradients may be rows
};

[[nodiscard]] RandomGraph random_graph(uint64_t seed, size_t steps);

}  // namespace tenon_tests

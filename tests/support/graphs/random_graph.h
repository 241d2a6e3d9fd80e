// Random primitive graphs such as layers record, with their external values. A seed determines the graph; fewer steps
// give its beginning. SPDX-License-Identifier: Apache-2.0
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
  std::vector<int64_t> symbols, bounds;  // sizes, and the upper bounds that memory is planned for
  std::map<ValueId, Numbers> given;      // external values
  std::vector<ValueId> kept;
  bool smooth = false;  // made of differentiable functions alone, in fp64
  // For a training; else empty.
  std::vector<ValueId> costs;         // values at which backward begins
  std::vector<ValueId> wanted;        // values whose gradients are requested
  std::map<ValueId, ValueId> stored;  // values converted from a parameter in fp32, and that
  std::set<ValueId> row_sparse;       // of `wanted`: those whose gradients may be row-sparse
};

[[nodiscard]] RandomGraph random_graph(uint64_t seed, size_t steps);

}  // namespace tenon_tests

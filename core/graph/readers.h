// Which nodes read a value. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/graph/graph.h"

namespace tenon::core {

// The readers of every value of a graph, valid until nodes are added or removed.
class Readers {
 public:
  explicit Readers(const Graph& graph);
  // Returns the numbers of the nodes that read the memory of `value`, itself or through a view, in ascending order; a
  // node once for each of its inputs that do. The views of the value are among these nodes.
  [[nodiscard]] const std::vector<size_t>& of(ValueId value) const { return nodes_[static_cast<size_t>(value)]; }

 private:
  std::vector<std::vector<size_t>> nodes_;  // by root
};

// Removes the nodes whose number is marked, and renumbers the others.
void remove_nodes(Graph& graph, const std::vector<bool>& removed);

}  // namespace tenon::core

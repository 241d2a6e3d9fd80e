// Which nodes read a value. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "core/graph/graph.h"

namespace tenon::core {

// The readers of every value of a graph, valid until nodes are added or removed.
class Readers {
 public:
  explicit Readers(const Graph& graph);
  // Returns the numbers of the nodes that read the memory of `value`, itself or through a view, in ascending order; a
  // node once for each of its inputs that do. The views of the value are among these nodes.
  [[nodiscard]] std::span<const size_t> of(ValueId value) const {
    const auto root = static_cast<size_t>(value);
    return {nodes_.data() + first_[root], nodes_.data() + first_[root + 1]};
  }

 private:
  std::vector<size_t> first_;  // [values + 1] by root: its first reader in nodes_
  std::vector<size_t> nodes_;  // the readers of all roots
};

// Removes the nodes whose number is marked, and renumbers the others.
void remove_nodes(Graph& graph, const std::vector<bool>& removed);

}  // namespace tenon::core

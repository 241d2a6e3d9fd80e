// SPDX-License-Identifier: Apache-2.0
#include "core/graph/readers.h"

namespace tenon::core {

Readers::Readers(const Graph& graph) : nodes_(graph.values.size()) {
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    for (const ValueId input : graph.nodes[i].inputs)
      if (input != kNoValue) nodes_[static_cast<size_t>(graph.root(input))].push_back(i);
}

void remove_nodes(Graph& graph, const std::vector<bool>& removed) {
  std::vector<Node> kept;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (!removed[i]) kept.push_back(std::move(graph.nodes[i]));
  graph.nodes = std::move(kept);
  graph.renumber();
}

}  // namespace tenon::core

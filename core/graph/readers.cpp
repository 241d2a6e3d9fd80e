// SPDX-License-Identifier: Apache-2.0
#include "core/graph/readers.h"

#include <numeric>

namespace tenon::core {

Readers::Readers(const Graph& graph) : first_(graph.values.size() + 1) {
  const auto each_read = [&](const auto& visit) {
    for (size_t i = 0; i < graph.nodes.size(); ++i)
      for (const ValueId input : graph.nodes[i].inputs)
        if (input != kNoValue) visit(static_cast<size_t>(graph.root(input)), i);
  };
  each_read([&](size_t root, size_t) { ++first_[root + 1]; });
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  nodes_.resize(first_.back());
  std::vector<size_t> next = first_;
  each_read([&](size_t root, size_t node) { nodes_[next[root]++] = node; });
}

void remove_nodes(Graph& graph, const std::vector<bool>& removed) {
  std::vector<Node> kept;
  kept.reserve(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (!removed[i]) kept.push_back(std::move(graph.nodes[i]));
  graph.nodes = std::move(kept);
  graph.renumber();
}

}  // namespace tenon::core

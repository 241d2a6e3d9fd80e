// A bag of rows is summed while they are read. SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/graph/passes.h"

namespace tenon {

namespace {

// The one node that reads a value; the number of nodes where it is not one alone.
size_t only_reader(const Graph& graph, ValueId value) {
  size_t reader = graph.nodes.size();
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    for (const ValueId input : graph.nodes[i].inputs) {
      if (input == kNoValue || graph.root(input) != value) continue;
      if (reader != graph.nodes.size() || input != value) return graph.nodes.size();
      reader = i;
    }
  return reader;
}

}  // namespace

void join_bags(Graph& graph, const std::vector<ValueId>& kept) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& gather = graph.nodes[i];
    const bool sums = gather.inputs.size() > 2;  // a bag already, whose sums may lie in sequences themselves
    if (!gather.is<Gather>() || sums || graph.spec(gather.inputs[1]).shape.size() != 1 ||
        !is_float(graph.spec(gather.inputs[0]).dtype))
      continue;
    const ValueId rows = gather.outputs[0];
    if (std::find(kept.begin(), kept.end(), rows) != kept.end()) continue;
    const size_t reader = only_reader(graph, rows);
    if (reader == graph.nodes.size()) continue;
    const Node& sum = graph.nodes[reader];
    const auto* segment = sum.as<Segment>();
    if (segment == nullptr || segment->op != TN_SEGMENT_SUM || sum.inputs[0] != rows) continue;
    Node bag = gather;
    bag.serve(sum);
    bag.inputs.push_back(sum.inputs[1]);
    bag.outputs = sum.outputs;
    graph.nodes[reader] = std::move(bag);
    graph.nodes.erase(graph.nodes.begin() + static_cast<std::ptrdiff_t>(i));
    --i;
  }
  graph.renumber();
}

}  // namespace tenon

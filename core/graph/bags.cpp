// Fuses gathers with sums over segments (embedding bags). SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/graph/passes.h"

namespace tenon::core {

namespace {

// Returns the only node that reads `value`. Returns the number of nodes if there is none, if there are several, or if
// the value is read through a view.
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
    const bool sums = gather.inputs.size() > 2;  // already a bag; a sum over the next outer level stays a node
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

}  // namespace tenon::core

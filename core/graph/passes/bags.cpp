// Fuses gathers with sums over segments (embedding bags). SPDX-License-Identifier: Apache-2.0
#include <set>

#include "core/graph/passes/passes.h"
#include "core/graph/readers.h"

namespace tenon::core {

void join_bags(Graph& graph, const std::vector<ValueId>& kept) {
  const Readers readers(graph);
  const std::set<ValueId> outputs(kept.begin(), kept.end());
  std::vector<bool> removed(graph.nodes.size(), false);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& gather = graph.nodes[i];
    const bool sums = gather.inputs.size() > 2;  // already a bag; a sum over the next outer level stays a node
    if (!gather.is<Gather>() || sums || graph.spec(gather.inputs[1]).shape.size() != 1 ||
        !is_float(graph.spec(gather.inputs[0]).dtype))
      continue;
    const ValueId rows = gather.outputs[0];
    if (outputs.contains(rows) || readers.of(rows).size() != 1) continue;
    Node& sum = graph.nodes[readers.of(rows)[0]];
    const auto* segment = sum.as<Segment>();
    if (segment == nullptr || segment->op != TN_SEGMENT_SUM || sum.inputs[0] != rows || sum.loop != gather.loop)
      continue;
    Node bag = gather;
    bag.serve(sum);
    bag.inputs.push_back(sum.inputs[1]);
    bag.outputs = sum.outputs;
    sum = std::move(bag);
    removed[i] = true;
  }
  remove_nodes(graph, removed);
}

}  // namespace tenon::core

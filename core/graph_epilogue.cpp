// Programs that run on the result of a product while it is in the cache. SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/graph.h"

namespace tenon {

namespace {

// The input of `node` that is the whole of `value` and nothing else of it; -1 where there is none.
int32_t product_input(const Graph& graph, const Node& node, ValueId value) {
  int32_t found = -1;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue || graph.root(node.inputs[i]) != value) continue;
    if (found >= 0 || node.program->inputs[i].extent != TN_FULL || node.program->inputs[i].kind != TN_FLOAT) return -1;
    found = static_cast<int32_t>(i);
  }
  return found;
}

Dim rows_of(const Graph& graph, ValueId product) {
  const Shape& shape = graph.spec(product).shape;
  return elements(shape.data(), shape.size() - 1);
}

// The first node behind number `gemm` that reads its result; the number of nodes where nobody does.
size_t first_reader(const Graph& graph, size_t gemm) {
  const ValueId product = graph.nodes[gemm].outputs[0];
  for (size_t i = gemm + 1; i < graph.nodes.size(); ++i)
    for (const ValueId input : graph.nodes[i].inputs)
      if (input != kNoValue && graph.root(input) == product && graph.nodes[i].primitive != Primitive::kView) return i;
  return graph.nodes.size();
}

Node joined(const Node& gemm, Node pointwise, int32_t product) {
  Node served = gemm;
  served.serve(pointwise);
  Node node = std::move(pointwise);
  node.inputs.erase(node.inputs.begin() + product);
  node.inputs.insert(node.inputs.begin(), gemm.inputs.begin(), gemm.inputs.end());
  node.outputs.insert(node.outputs.begin(), gemm.outputs[0]);
  node.primitive = Primitive::kGemm;
  node.layer = gemm.layer;
  node.fused = std::move(served.fused);
  node.flags = gemm.flags;
  node.alpha = gemm.alpha;
  node.product = product;
  return node;
}

}  // namespace

void attach_epilogues(Graph& graph, const EpilogueChoice& better) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& gemm = graph.nodes[i];
    if (gemm.primitive != Primitive::kGemm || gemm.program) continue;
    const size_t reader = first_reader(graph, i);
    if (reader == graph.nodes.size()) continue;
    const Node& pointwise = graph.nodes[reader];
    if (pointwise.primitive != Primitive::kPointwise || pointwise.backward != gemm.backward) continue;
    const int32_t product = product_input(graph, pointwise, gemm.outputs[0]);
    if (product < 0) continue;
    Node placed = pointwise;
    const Dim rows = rows_of(graph, gemm.outputs[0]), columns = graph.spec(gemm.outputs[0]).shape.back();
    if (placed.program->is_flat() && same(elements(placed.whole), elements(graph.spec(gemm.outputs[0]).shape))) {
      placed.rows = rows;
      placed.columns = columns;
    }
    if (!same(placed.rows, rows) || !same(placed.columns, columns)) continue;
    if (!better(gemm, placed, product)) continue;
    // Nobody between the two reads the product, so it may be computed where the program stands.
    graph.nodes[reader] = joined(gemm, std::move(placed), product);
    graph.nodes.erase(graph.nodes.begin() + static_cast<std::ptrdiff_t>(i));
    --i;
  }
  graph.renumber();
}

}  // namespace tenon

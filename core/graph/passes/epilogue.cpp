// Fuses pointwise nodes into products, of matrices and convolutions, as epilogues. SPDX-License-Identifier: Apache-2.0
#include "core/graph/passes/passes.h"
#include "core/graph/readers.h"

namespace tenon::core {

namespace {

// Returns the number of the only input of `node` that reads `value`, itself or through a view; -1 if there are none or
// several, or if that input is not a FULL float.
int32_t product_input(const Graph& graph, const Node& node, ValueId value) {
  const Program& program = *node.as<Pointwise>()->program;
  int32_t found = -1;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue || graph.root(node.inputs[i]) != value) continue;
    if (found >= 0 || program.inputs[i].extent != TN_FULL || program.inputs[i].kind != TN_FLOAT) return -1;
    found = static_cast<int32_t>(i);
  }
  return found;
}

// Returns the rows of the grid of an epilogue: the product of all dimensions but the last.
Dim rows_of(const Graph& graph, ValueId product) {
  const Shape& shape = graph.spec(product).shape;
  return elements(shape.data(), shape.size() - 1);
}

// Returns the first node that reads the result of a product, apart from views; null if there is none.
Node* first_reader(Graph& graph, const Readers& readers, ValueId product) {
  for (const size_t number : readers.of(product))
    if (!graph.nodes[number].is<View>()) return &graph.nodes[number];
  return nullptr;
}

// Returns the product with the pointwise node as its epilogue, whose input number `product` is the result.
Node joined(const Node& made, const Node& pointwise, const Pointwise& epilogue, int32_t product) {
  Node node = made;
  node.serve(pointwise);
  node.inputs.insert(node.inputs.end(), pointwise.inputs.begin(), pointwise.inputs.end());
  node.inputs.erase(node.inputs.begin() + static_cast<std::ptrdiff_t>(made.inputs.size()) + product);
  node.outputs.insert(node.outputs.end(), pointwise.outputs.begin(), pointwise.outputs.end());
  node.epilogue = Epilogue{epilogue, product};
  return node;
}

}  // namespace

void attach_epilogues(Graph& graph, const NodeChoice& better) {
  // Stays valid for the results of later products: one that moves reads only values that are computed before it.
  const Readers readers(graph);
  std::vector<bool> removed(graph.nodes.size(), false);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& made = graph.nodes[i];
    if (!made.is_product() || made.epilogue) continue;
    const ValueId result = made.outputs[0];
    Node* const reader = first_reader(graph, readers, result);
    if (reader == nullptr) continue;
    const Node& pointwise = *reader;
    if (!pointwise.is<Pointwise>() || pointwise.backward != made.backward || pointwise.loop != made.loop) continue;
    const int32_t product = product_input(graph, pointwise, result);
    if (product < 0) continue;
    Pointwise epilogue = *pointwise.as<Pointwise>();
    const Dim rows = rows_of(graph, result), columns = graph.spec(result).shape.back();
    if (epilogue.program->is_flat() && same(elements(epilogue.whole), elements(graph.spec(result).shape))) {
      epilogue.rows = rows;
      epilogue.columns = columns;
    }
    if (!same(epilogue.rows, rows) || !same(epilogue.columns, columns)) continue;
    Node both = joined(made, pointwise, epilogue, product);
    if (!better(both)) continue;
    // No node between the two reads the result, so it may move to the place of the pointwise node.
    *reader = std::move(both);
    removed[i] = true;
  }
  remove_nodes(graph, removed);
}

}  // namespace tenon::core

// Fuses products of one term with the sums of equal rows of their results. SPDX-License-Identifier: Apache-2.0
#include <set>

#include "core/graph/passes/passes.h"
#include "core/graph/readers.h"

namespace tenon::core {

namespace {

// Returns the product of one term whose results [batch..., m, n] are the rows [m of each matrix] of a contribution by
// `ids`: the product of a row of B and of a weight in A for each of them. Null if another node makes the values.
const Node* outer_product(const Graph& graph, ValueId values, ValueId ids) {
  const int32_t producer = graph.values[static_cast<size_t>(values)].producer;
  if (producer < 0 || graph.values[static_cast<size_t>(values)].alias_of != kNoValue) return nullptr;
  const Node& node = graph.nodes[static_cast<size_t>(producer)];
  const auto* const gemm = node.as<Gemm>();
  if (gemm == nullptr || gemm->packed || node.epilogue || node.loop >= 0) return nullptr;
  const Shape a = matrix_shape(graph, node, 0);
  const Dim& terms = a[a.size() - ((gemm->flags & TN_TRANSPOSE_A) != 0 ? 2 : 1)];
  const bool has_matrices = graph.spec(values).shape.size() == graph.spec(ids).shape.size() + 1;
  return has_matrices && same(terms, tn_dim_constant(1)) ? &node : nullptr;
}

}  // namespace

void join_products(Graph& graph, const std::vector<ValueId>& kept, const NodeChoice& better) {
  const Readers readers(graph);
  const std::set<ValueId> outputs(kept.begin(), kept.end());
  std::vector<bool> removed(graph.nodes.size(), false);
  for (Node& node : graph.nodes) {
    const auto* const sums = node.as<Coalesce>();
    if (sums == nullptr || sums->stride() != 3 || node.loop >= 0) continue;
    Node both = node;
    Coalesce of_products;
    std::vector<size_t> joined;
    both.inputs.clear();
    for (size_t i = 0; i < node.inputs.size(); i += 3) {
      const ValueId values = node.inputs[i], ids = node.inputs[i + 1], offsets = node.inputs[i + 2];
      const bool alone = readers.of(graph.root(values)).size() == 1 && !outputs.contains(values);
      const Node* const product = alone && offsets == kNoValue ? outer_product(graph, values, ids) : nullptr;
      if (product == nullptr) {
        both.inputs.insert(both.inputs.end(), {values, ids, offsets, kNoValue, kNoValue});
        of_products.alphas.push_back(1);
        continue;
      }
      both.inputs.insert(both.inputs.end(), {product->inputs[1], ids, kNoValue, product->inputs[0], kNoValue});
      both.serve(*product);
      of_products.alphas.push_back(product->as<Gemm>()->alpha);
      joined.push_back(static_cast<size_t>(product - graph.nodes.data()));
    }
    both.operation = std::move(of_products);
    if (joined.empty() || !better(both)) continue;
    node = std::move(both);
    for (const size_t product : joined) removed[product] = true;
  }
  remove_nodes(graph, removed);
}

}  // namespace tenon::core

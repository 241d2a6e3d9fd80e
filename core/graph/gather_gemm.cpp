// Fuses gathers with the products that read their rows. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "core/error.h"
#include "core/graph/passes.h"
#include "core/graph/readers.h"

namespace tenon::core {

void GatherGemm::derive(Differentiator& /*gradients*/, const Node& /*node*/) const {
  fail(TN_INTERNAL, "gathers join products after differentiation");
}

namespace {

// Whether the rows of a gather are rows of matrices: those of a table of two dimensions, outside of loops.
bool makes_matrices(const Graph& graph, const Node& node) {
  return node.is<Gather>() && node.inputs.size() == 2 && node.loop < 0 &&
         graph.spec(node.inputs[0]).shape.size() == 2 && is_float(graph.spec(node.inputs[0]).dtype);
}

// Returns a product that reads the rows of the gather from their table; nothing if `node` reads them otherwise.
std::optional<Node> joined(const Node& node, const Node& gather) {
  const auto* const gemm = node.as<Gemm>();
  const bool is_plain = gemm != nullptr && !gemm->packed && !node.epilogue;
  if ((!is_plain && !node.is<GatherGemm>()) || node.loop >= 0) return std::nullopt;
  Node both = gather;  // messages about ids name its layer first
  both.serve(node);
  both.backward = node.backward;
  both.inputs = node.inputs;
  both.inputs.resize(4, kNoValue);
  both.outputs = node.outputs;
  both.operation = is_plain ? GatherGemm{*gemm} : *node.as<GatherGemm>();
  for (size_t i = 0; i < 2; ++i) {
    if (both.inputs[i] != gather.outputs[0] || both.inputs[2 + i] != kNoValue) continue;
    both.inputs[i] = gather.inputs[0];
    both.inputs[2 + i] = gather.inputs[1];
  }
  const bool still_reads = std::find(both.inputs.begin(), both.inputs.end(), gather.outputs[0]) != both.inputs.end();
  return still_reads ? std::nullopt : std::optional(std::move(both));
}

}  // namespace

void join_gathers(Graph& graph, const std::vector<ValueId>& kept, const ProductChoice& better) {
  const Readers readers(graph);  // stays valid: a product that joins reads no other gather's rows
  const std::set<ValueId> outputs(kept.begin(), kept.end());
  std::vector<bool> removed(graph.nodes.size(), false);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& gather = graph.nodes[i];
    if (!makes_matrices(graph, gather) || outputs.contains(gather.outputs[0])) continue;
    const auto reading = readers.of(gather.outputs[0]);
    std::vector<Node> products;
    for (const size_t number : reading) {
      std::optional<Node> product = joined(graph.nodes[number], gather);
      if (!product || !better(*product)) break;
      products.push_back(std::move(*product));
    }
    if (products.size() != reading.size()) continue;
    for (size_t k = 0; k < reading.size(); ++k) graph.nodes[reading[k]] = std::move(products[k]);
    removed[i] = true;
  }
  remove_nodes(graph, removed);
}

Shape matrix_shape(const Graph& graph, const Node& product, size_t operand) {
  Shape shape = graph.spec(product.inputs[operand]).shape;
  const ValueId ids = product.is<GatherGemm>() ? product.inputs[2 + operand] : kNoValue;
  if (ids != kNoValue) {
    const Dim columns = shape.back();
    shape = graph.spec(ids).shape;
    shape.push_back(columns);
  }
  return shape;
}

}  // namespace tenon::core

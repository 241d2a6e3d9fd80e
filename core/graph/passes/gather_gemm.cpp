// Fuses gathers with the products that read their rows. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "core/error.h"
#include "core/graph/passes/passes.h"
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

// Returns a node that reads the rows of the gather from their table; nothing if `node` reads them otherwise.
std::optional<Node> joined(const Node& node, const Node& gather) {
  const auto* const gemm = node.as<Gemm>();
  const auto* const sums = node.as<Coalesce>();
  const bool is_gemm = gemm != nullptr && !gemm->packed && !node.epilogue;
  const bool sums_products = sums != nullptr && sums->stride() == 5;
  if ((!is_gemm && !node.is<GatherGemm>() && !sums_products) || node.loop >= 0) return std::nullopt;
  Node both = gather;  // messages about ids name its layer first
  both.serve(node);
  both.backward = node.backward;
  both.operation = node.operation;
  both.inputs = node.inputs;
  both.outputs = node.outputs;
  if (is_gemm) {
    both.operation = GatherGemm{*gemm};
    both.inputs.resize(4, kNoValue);
  }
  // Input number `values` becomes the table if its ids are not there yet.
  const auto read = [&](size_t values, size_t ids) {
    if (both.inputs[values] != gather.outputs[0] || both.inputs[ids] != kNoValue) return;
    both.inputs[values] = gather.inputs[0];
    both.inputs[ids] = gather.inputs[1];
  };
  if (sums_products) {
    for (size_t i = 0; i < both.inputs.size(); i += 5) read(i, i + 4);
  } else {
    read(0, 2);
    read(1, 3);
  }
  const bool still_reads = std::find(both.inputs.begin(), both.inputs.end(), gather.outputs[0]) != both.inputs.end();
  return still_reads ? std::nullopt : std::optional(std::move(both));
}

}  // namespace

void join_gathers(Graph& graph, const std::vector<ValueId>& kept, const NodeChoice& better) {
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

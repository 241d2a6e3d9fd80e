// Packs the matrices that products of loops read at all steps, and those that stay the same from run to run.
// SPDX-License-Identifier: Apache-2.0
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/graph/loops.h"
#include "core/graph/passes/passes.h"

namespace tenon::core {

void Pack::derive(Differentiator& /*gradients*/, const Node& /*node*/) const {
  fail(TN_INTERNAL, "operands are packed after differentiation");
}

namespace {

// Packs matrices, each once, in nodes that its user places.
class Packer {
 public:
  explicit Packer(Graph& graph) : graph_(graph) {}

  // Lets a product read its B packed. Returns the node that packs B if it is a new one.
  std::optional<Node> pack(Node& product, uint64_t bytes) {
    auto& gemm = *product.as<Gemm>();
    const auto [known, is_new] = packed_.try_emplace({product.inputs[1], gemm.flags}, kNoValue);
    std::optional<Node> made;
    if (is_new) {
      const Dim size = tn_dim_constant(static_cast<int64_t>(bytes));
      known->second = graph_.add_value({TN_U8, {size}, TN_DENSE, 0, {}}, -1);
      made.emplace();
      made->operation = Pack{gemm.flags};
      made->inputs = {product.inputs[1]};
      made->outputs = {known->second};
      made->layer = product.layer;
      made->backward = product.backward;
    }
    product.inputs[1] = known->second;
    gemm.packed = true;
    return made;
  }
  void forget() { packed_.clear(); }

 private:
  Graph& graph_;
  std::map<std::pair<ValueId, uint32_t>, ValueId> packed_;  // by matrix and flags
};

}  // namespace

std::vector<ValueId> pack_operands(Graph& graph, const PackedBytes& bytes_of, const std::vector<bool>& constant) {
  std::vector<Node> nodes, once;
  std::ptrdiff_t first = 0;  // the first node of the loop at hand, around which there is none
  int32_t loop = -1;
  Packer of_loop(graph), of_all(graph);
  for (Node& node : graph.nodes) {
    if (const int32_t of = outermost_loop(graph, node.loop); of != loop) {
      loop = of;
      first = static_cast<std::ptrdiff_t>(nodes.size());
      of_loop.forget();
    }
    const bool is_constant = node.is<Gemm>() && constant[static_cast<size_t>(graph.root(node.inputs[1]))];
    const uint64_t bytes = node.is<Gemm>() && (is_constant || loop >= 0) ? bytes_of(node) : 0;
    if (bytes > 0) {
      std::optional<Node> pack = (is_constant ? of_all : of_loop).pack(node, bytes);
      if (pack && is_constant) {
        pack->once = true;
        once.push_back(std::move(*pack));
      } else if (pack) {
        nodes.insert(nodes.begin() + first++, std::move(*pack));
      }
    }
    nodes.push_back(std::move(node));
  }
  std::vector<ValueId> stay;
  for (const Node& node : once) stay.push_back(node.outputs[0]);
  graph.nodes = std::move(once);
  std::move(nodes.begin(), nodes.end(), std::back_inserter(graph.nodes));
  graph.renumber();
  return stay;
}

}  // namespace tenon::core

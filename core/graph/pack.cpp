// Packs the matrices that products of loops read at all steps. SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "core/error.h"
#include "core/graph/loops.h"
#include "core/graph/passes.h"

namespace tenon::core {

void Pack::derive(Differentiator& /*gradients*/, const Node& /*node*/) const {
  fail(TN_INTERNAL, "operands are packed after differentiation");
}

void pack_operands(Graph& graph, const PackedBytes& bytes_of) {
  std::vector<Node> nodes;
  std::ptrdiff_t first = 0;  // the first node of the loop at hand, around which there is none
  int32_t loop = -1;
  std::map<std::pair<ValueId, uint32_t>, ValueId> packed;  // for that loop, by matrix and flags
  for (Node& node : graph.nodes) {
    if (const int32_t of = outermost_loop(graph, node.loop); of != loop) {
      loop = of;
      first = static_cast<std::ptrdiff_t>(nodes.size());
      packed.clear();
    }
    auto* const gemm = node.as<Gemm>();
    const uint64_t bytes = loop < 0 || gemm == nullptr ? 0 : bytes_of(node);
    if (bytes > 0) {
      const auto [known, is_new] = packed.try_emplace({node.inputs[1], gemm->flags}, kNoValue);
      if (is_new) {
        const Dim size = tn_dim_constant(static_cast<int64_t>(bytes));
        known->second = graph.add_value({TN_U8, {size}, TN_DENSE, 0, {}}, -1);
        Node pack;
        pack.operation = Pack{gemm->flags};
        pack.inputs = {node.inputs[1]};
        pack.outputs = {known->second};
        pack.layer = node.layer;
        pack.backward = node.backward;
        nodes.insert(nodes.begin() + first++, std::move(pack));
      }
      node.inputs[1] = known->second;
      gemm->packed = true;
    }
    nodes.push_back(std::move(node));
  }
  graph.nodes = std::move(nodes);
  graph.renumber();
}

}  // namespace tenon::core

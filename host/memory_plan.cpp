// Liveness and placement in one arena. SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/checked.h"
#include "host/planner.h"

namespace tenon {

namespace {

constexpr uint64_t kLine = 64;

struct Life {
  ValueId value = kNoValue;
  size_t first = 0, last = 0;  // node numbers, both inclusive
  uint64_t bytes = 0;
  uint64_t offset = 0;
};

bool overlap(const Life& a, const Life& b) { return a.first <= b.last && b.first <= a.last; }

uint64_t live_bound(const std::vector<Life>& lives, size_t nodes) {
  std::vector<uint64_t> live(nodes + 1, 0);
  for (const Life& life : lives)
    for (size_t node = life.first; node <= std::min(life.last, nodes); ++node) live[node] += life.bytes;
  return *std::max_element(live.begin(), live.end());
}

}  // namespace

uint64_t bytes_of(const Spec& spec, const std::vector<int64_t>& bounds) {
  const Shape shape = bounded(spec.shape, bounds);
  uint64_t bytes = tn_dtype_bytes(spec.dtype);
  for (const Dim& dim : shape) {
    if (dim.bound < 0) fail(TN_INVALID, "the size of ", to_string(spec), " has no bound");
    bytes = checked_multiply(bytes, static_cast<uint64_t>(dim.bound), "tensor bytes");
  }
  return checked_add(bytes, kLine - 1, "tensor bytes") / kLine * kLine;
}

// Largest first, each at the lowest offset that is free during its whole life (Pisarchyk & Lee, "Efficient memory
// management for deep neural net inference", 2020, greedy by size).
MemoryPlan plan_memory(const Graph& graph, const std::vector<bool>& placed, const std::vector<ValueId>& kept,
                       const std::vector<int64_t>& bounds) {
  MemoryPlan plan;
  plan.offsets.assign(graph.values.size(), MemoryPlan::kNotHere);
  std::vector<Life> lives;
  std::vector<size_t> life_of(graph.values.size(), ~size_t{0});
  const auto live_root = [&](ValueId value) -> Life* {
    const auto root = static_cast<size_t>(graph.root(value));
    return life_of[root] == ~size_t{0} ? nullptr : &lives[life_of[root]];
  };
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    for (const ValueId output : graph.nodes[node].outputs) {
      if (output == kNoValue || placed[static_cast<size_t>(output)] || graph.root(output) != output) continue;
      life_of[static_cast<size_t>(output)] = lives.size();
      lives.push_back({output, node, node, bytes_of(graph.spec(output), bounds), 0});
    }
    for (const ValueId input : graph.nodes[node].inputs)
      if (Life* life = input == kNoValue ? nullptr : live_root(input)) life->last = node;
  }
  for (const ValueId value : kept)
    if (Life* life = value == kNoValue ? nullptr : live_root(value)) life->last = graph.nodes.size();
  plan.live_bound = live_bound(lives, graph.nodes.size());

  std::stable_sort(lives.begin(), lives.end(), [](const Life& a, const Life& b) { return a.bytes > b.bytes; });
  for (size_t i = 0; i < lives.size(); ++i) {
    std::vector<const Life*> neighbours;
    for (size_t j = 0; j < i; ++j)
      if (overlap(lives[i], lives[j])) neighbours.push_back(&lives[j]);
    std::sort(neighbours.begin(), neighbours.end(), [](const Life* a, const Life* b) { return a->offset < b->offset; });
    uint64_t offset = 0;
    for (const Life* neighbour : neighbours) {
      if (offset + lives[i].bytes <= neighbour->offset) break;
      offset = std::max(offset, neighbour->offset + neighbour->bytes);
    }
    lives[i].offset = offset;
    plan.offsets[static_cast<size_t>(lives[i].value)] = offset;
    plan.bytes = std::max(plan.bytes, checked_add(offset, lives[i].bytes, "arena bytes"));
  }
  return plan;
}

}  // namespace tenon

// SPDX-License-Identifier: Apache-2.0
#include "host/compile/memory_plan.h"

#include <algorithm>

#include "core/alignment.h"
#include "core/checked.h"
#include "core/graph/loops.h"
#include "host/compile/arena_space.h"

namespace tenon::host {

namespace {

// One place in the arena, and the values that use it one after the other.
struct Life {
  std::vector<ValueId> values;  // the first value, then the outputs that reuse its memory
  size_t first = 0, last = 0;   // node numbers, both inclusive
  uint64_t bytes = 0;
};

uint64_t live_bound(const std::vector<Life>& lives, size_t nodes) {
  std::vector<uint64_t> begins(nodes + 2, 0), ends(nodes + 2, 0);  // per node: bytes that live from, or up to, the node
  for (const Life& life : lives) {
    begins[life.first] += life.bytes;
    ends[life.last + 1] += life.bytes;
  }
  uint64_t live = 0, most = 0;
  for (size_t node = 0; node <= nodes; ++node) {
    live += begins[node] - ends[node];
    most = std::max(most, live);
  }
  return most;
}

}  // namespace

uint64_t bytes_of(const Spec& spec, const std::vector<int64_t>& bounds) {
  const Shape shape = bounded(spec.shape, bounds);
  uint64_t elements = 1;
  bool fits = true;
  for (const Dim& dim : shape) {
    if (dim.bound < 0) fail(TN_INVALID, "the size of ", to_string(spec), " has no bound");
    fits &= !__builtin_mul_overflow(elements, static_cast<uint64_t>(dim.bound), &elements);
  }
  constexpr uint64_t kMostElements = uint64_t{1} << 59;  // their bits can be counted
  if (!fits || elements > kMostElements) fail(TN_INVALID, to_string(spec), " has too many elements");
  return whole_lines(storage_bytes(spec.dtype, elements, "tensor bytes"), "tensor bytes");
}

std::vector<int64_t> bounds_within(const Graph& graph, int32_t number, const std::vector<int64_t>& whole) {
  std::vector<int64_t> bounds = whole;
  const auto put = [&](const Dim& dim, int64_t bound) {
    if (static_cast<size_t>(dim.symbol) < bounds.size()) bounds[static_cast<size_t>(dim.symbol)] = bound;
  };
  const StepOrder& order = graph.orders[static_cast<size_t>(number)];
  const Dim& outer = graph.rows.at(order.rows).outer;
  put(order.steps, tn_dim_value(&outer, whole.data()));  // a step has a row for each sequence at most
  for (const StepRows& rows : graph.step_rows) {
    if (rows.order != number) continue;
    const int64_t most = whole[static_cast<size_t>(rows.source)];  // a step sees each row outside once at most
    put(rows.rows, most);
    for (const StepOrder& inner : graph.orders)
      if (inner.nested && inner.rows == rows.rows.symbol) put(inner.steps, most);
  }
  return bounds;
}

namespace {

// What loops change: a value that all of a loop's steps share lives as long as the loop, and one that lives within a
// step has the size of a step.
class LoopLives {
 public:
  LoopLives(const Graph& graph, const std::vector<ValueId>& kept, const std::vector<int64_t>& bounds)
      : graph_(graph), whole_(bounds), steps_(values_of_steps(graph, kept)), spans_(graph.loops.size()) {
    for (size_t i = graph.nodes.size(); i-- > 0;) {
      if (graph.nodes[i].loop < 0) continue;
      auto& [first, last] = spans_[static_cast<size_t>(outermost_loop(graph, graph.nodes[i].loop))];
      if (last == 0) last = i;
      first = i;
    }
    for (const Loop& loop : graph.loops) in_steps_.push_back(bounds_within(graph, loop.order, bounds));
  }

  // The loop within whose steps a value lives, or -1.
  [[nodiscard]] int32_t step_of(ValueId value) const { return steps_[static_cast<size_t>(graph_.root(value))]; }
  [[nodiscard]] uint64_t bytes(ValueId value) const {
    return bytes_of(graph_.spec(value), step_of(value) < 0 ? whole_ : in_steps_[static_cast<size_t>(step_of(value))]);
  }
  // The first node at which a value that `node` writes is live, and the last one if `node` reads or writes it.
  [[nodiscard]] size_t first(ValueId value, size_t node) const { return shared(value, node) ? span(node).first : node; }
  [[nodiscard]] size_t last(ValueId value, size_t node) const {
    return shared(value, node) ? span(node).second + 1 : node;
  }

 private:
  [[nodiscard]] bool shared(ValueId value, size_t node) const {
    return graph_.nodes[node].loop >= 0 && step_of(value) < 0;
  }
  [[nodiscard]] const std::pair<size_t, size_t>& span(size_t node) const {
    return spans_[static_cast<size_t>(outermost_loop(graph_, graph_.nodes[node].loop))];
  }
  const Graph& graph_;
  const std::vector<int64_t>& whole_;
  std::vector<std::vector<int64_t>> in_steps_;  // by loop
  std::vector<int32_t> steps_;
  std::vector<std::pair<size_t, size_t>> spans_;  // by loop that no other is around: its first and its last node
};

// Returns for each root value the number of the last node that reads it; the number of nodes for kept values.
std::vector<size_t> last_readers(const Graph& graph, const std::vector<ValueId>& kept, const LoopLives& lives) {
  std::vector<size_t> last(graph.values.size(), 0);
  const auto read = [&](ValueId value, size_t by) {
    if (value == kNoValue) return;
    size_t& known = last[static_cast<size_t>(graph.root(value))];
    known = std::max(known, by);
  };
  for (size_t node = 0; node < graph.nodes.size(); ++node)
    for (const ValueId input : graph.nodes[node].inputs)
      if (input != kNoValue) read(input, lives.last(input, node));
  for (const ValueId value : kept) read(value, graph.nodes.size());
  return last;
}

// Returns the input whose memory output number `output` of a node may reuse, or kNoValue. The node must be the input's
// last reader and read it once, the size must be that of the output, and no other output may have taken the memory. The
// contract of tenon.pointwise/1 allows such an output for inputs of its extent, a native kernel for those that it
// stated.
ValueId in_place_of(const Graph& graph, size_t number, size_t output, const std::vector<size_t>& last,
                    const std::vector<bool>& placed, const std::vector<ValueId>& taken, const LoopLives& lives) {
  const Node& node = graph.nodes[number];
  const auto* pointwise = node.as<Pointwise>();
  const auto* native = node.as<NativeCall>();
  if (pointwise == nullptr && native == nullptr) return kNoValue;
  const Spec& made = graph.spec(node.outputs[output]);
  const auto may_share = [&](size_t i) {
    if (native != nullptr)
      return output < native->in_place.size() && native->in_place[output] == static_cast<int32_t>(i);
    return pointwise->program->inputs[i].extent == pointwise->program->output_extent(output);
  };
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId input = node.inputs[i];
    if (input == kNoValue || !may_share(i)) continue;
    const ValueId root = graph.root(input);
    const auto at = static_cast<size_t>(root);
    if (placed[at] || graph.values[at].producer < 0 || last[at] != number) continue;
    if (std::find(taken.begin(), taken.end(), root) != taken.end()) continue;
    const auto same_root = [&](ValueId other) { return other != kNoValue && graph.root(other) == root; };
    if (std::count_if(node.inputs.begin(), node.inputs.end(), same_root) != 1) continue;
    const Spec& spec = graph.spec(input);
    if (tn_dtype_bytes(spec.dtype) == tn_dtype_bytes(made.dtype) &&
        lives.step_of(root) == lives.step_of(node.outputs[output]) &&
        lives.bytes(root) == lives.bytes(node.outputs[output]))
      return root;
  }
  return kNoValue;
}

// Returns the result of a product with an epilogue if no other node reads it and output number `output` has its size,
// so that the output may reuse its memory; else kNoValue.
ValueId on_product(const Graph& graph, size_t number, size_t output, const std::vector<size_t>& last,
                   const std::vector<bool>& placed, const std::vector<ValueId>& taken, const LoopLives& lives) {
  const Node& node = graph.nodes[number];
  if (!node.epilogue || output == 0) return kNoValue;
  const ValueId product = node.outputs[0];
  const auto at = static_cast<size_t>(product);
  if (placed[at] || last[at] > number || std::find(taken.begin(), taken.end(), product) != taken.end()) return kNoValue;
  const Spec& made = graph.spec(node.outputs[output]);
  const bool fits = node.epilogue->pointwise.program->output_extent(output - 1) == TN_FULL &&
                    tn_dtype_bytes(graph.spec(product).dtype) == tn_dtype_bytes(made.dtype) &&
                    lives.step_of(product) == lives.step_of(node.outputs[output]) &&
                    lives.bytes(product) == lives.bytes(node.outputs[output]);
  return fits ? product : kNoValue;
}

}  // namespace

// Places the largest first, each at the lowest offset that is free during its whole life (Pisarchyk & Lee, "Efficient
// memory management for deep neural net inference", 2020, greedy by size).
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
  const LoopLives in_loops(graph, kept, bounds);
  const std::vector<size_t> last = last_readers(graph, kept, in_loops);
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    std::vector<ValueId> taken;  // values whose memory an output of this node reuses
    for (size_t i = 0; i < graph.nodes[node].outputs.size(); ++i) {
      const ValueId output = graph.nodes[node].outputs[i];
      if (output == kNoValue || placed[static_cast<size_t>(output)] || graph.root(output) != output) continue;
      ValueId before = in_place_of(graph, node, i, last, placed, taken, in_loops);
      if (before == kNoValue) before = on_product(graph, node, i, last, placed, taken, in_loops);
      if (before != kNoValue) {
        taken.push_back(before);
        life_of[static_cast<size_t>(output)] = life_of[static_cast<size_t>(before)];
        lives[life_of[static_cast<size_t>(output)]].values.push_back(output);
        lives[life_of[static_cast<size_t>(output)]].last = node;
        continue;
      }
      life_of[static_cast<size_t>(output)] = lives.size();
      lives.push_back({{output}, in_loops.first(output, node), in_loops.last(output, node), in_loops.bytes(output)});
    }
    for (const ValueId input : graph.nodes[node].inputs)
      if (Life* life = input == kNoValue ? nullptr : live_root(input))
        life->last = std::max(life->last, in_loops.last(input, node));
  }
  for (const ValueId value : kept)
    if (Life* life = value == kNoValue ? nullptr : live_root(value)) life->last = graph.nodes.size();
  plan.live_bound = live_bound(lives, graph.nodes.size());

  std::stable_sort(lives.begin(), lives.end(), [](const Life& a, const Life& b) { return a.bytes > b.bytes; });
  ArenaSpace space(graph.nodes.size() + 1);
  for (const Life& life : lives) {
    const uint64_t offset = space.take(life.first, life.last, life.bytes);
    for (const ValueId value : life.values) plan.offsets[static_cast<size_t>(value)] = offset;
    plan.bytes = std::max(plan.bytes, offset + life.bytes);
  }
  return plan;
}

}  // namespace tenon::host

// SPDX-License-Identifier: Apache-2.0
#include "core/graph/loop_range.h"

#include <algorithm>
#include <set>

#include "core/graph/loops.h"

namespace tenon::core {

namespace {

// Marks what depends on what the memories of `loop` find, and on what its last steps leave: a node between two of these
// may read the first. Other loops in the range are inside of its steps: all of their memories do or none does, as they
// run together, and they also read what later nodes compute.
void find_dependent(const Graph& graph, int32_t loop, LoopRange& range) {
  std::set<int32_t> inner;  // loops that depend on it
  for (bool more = true; more;) {
    more = false;
    for (size_t i = range.first; i <= range.last; ++i) {
      const Node& node = graph.nodes[i];
      const int32_t of = loop_of_end(node);
      const bool own = of == loop;
      if (!own && !any(node.inputs, range.depends) && !inner.contains(of)) continue;
      if (!own && of >= 0) more = inner.insert(of).second || more;
      for (const ValueId output : node.outputs)
        if (output != kNoValue) range.depends[at(output)] = true;
    }
  }
}

// Why a node cannot run step by step; "" if it can.
class StepCheck {
 public:
  StepCheck(const Graph& graph, const Node& node, int32_t order) : graph_(graph), node_(node), order_(order) {}

  [[nodiscard]] std::string refusal() const {
    if (const int32_t loop = loop_of_end(node_); loop >= 0) return of_loop(graph_.loops[static_cast<size_t>(loop)]);
    for (const ValueId output : node_.outputs)
      if (output != kNoValue && !by_step(output))
        return node_.is<Pointwise>() || node_.is<Gemm>() ? kRelates : kMayRelate;
    return std::visit([&](const auto& operation) { return of(operation); }, node_.operation);
  }

 private:
  static constexpr const char* kRelates = "relates different steps";
  static constexpr const char* kMayRelate = "may relate different steps, which this version cannot rule out";
  // Whether a step has consecutive elements of a value: a number for each sequence, such as one, or rows of further
  // sequences.
  [[nodiscard]] bool by_step(ValueId value) const {
    if (const StepRows* const rows = step_rows_of(graph_, value)) return rows->order == order_;
    const Shape& shape = graph_.spec(value).shape;
    if (shape.empty() || shape[0].offset != 0) return false;
    for (size_t i = 0; i < graph_.orders.size(); ++i)
      if (graph_.orders[i].steps.symbol == shape[0].symbol) return is_inside(static_cast<int32_t>(i));
    return false;
  }
  // Whether the elements of an order are those of the steps, or belong to an outer step.
  [[nodiscard]] bool is_inside(int32_t order) const { return order == order_ || order_around(graph_, order) == order_; }
  // Whether ids are a permutation within the rows that a step sees.
  [[nodiscard]] bool permutes(ValueId ids) const {
    for (size_t i = 0; i < graph_.orders.size(); ++i)
      if (order_around(graph_, static_cast<int32_t>(i)) == order_ &&
          (graph_.orders[i].row_of_step == ids || graph_.orders[i].step_of_row == ids))
        return true;
    return false;
  }
  // Whether the elements of a value are those of the first output.
  [[nodiscard]] bool is_like_output(ValueId value) const {
    return by_step(value) && same(graph_.spec(value).shape[0], graph_.spec(node_.outputs[0]).shape[0]);
  }
  [[nodiscard]] std::string when(bool unclear) const { return unclear ? kMayRelate : ""; }
  [[nodiscard]] std::string relates_when(bool relates) const { return relates ? kRelates : ""; }

  [[nodiscard]] std::string of(const Pointwise& pointwise) const {
    const Program& program = *pointwise.program;
    if (program.draws()) return "draws; draw from a value that no memory has a part in";
    bool relates = (pointwise.leading < 1 && !program.is_flat()) || pointwise.whole.empty() ||
                   !same(pointwise.whole[0], graph_.spec(node_.outputs[0]).shape[0]);
    for (const tn_instruction& in : program.instructions) {
      const bool reduces = in.op == TN_OP_REDUCE_SUM || in.op == TN_OP_REDUCE_MAX || in.op == TN_OP_REDUCE_MIN;
      relates = relates ||
                (reduces && in.extent != TN_PER_ROW && program.extents[static_cast<size_t>(in.a)] != TN_PER_COLUMN);
    }
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      const uint8_t extent = program.inputs[i].extent;
      const bool by_row = extent == TN_FULL || extent == TN_PER_ROW;
      relates = relates || (by_row ? !is_like_output(node_.inputs[i]) : by_step(node_.inputs[i]));
    }
    return relates_when(relates);
  }
  [[nodiscard]] std::string of(const Gemm& gemm) const {
    const size_t rank = graph_.spec(node_.inputs[0]).shape.size();
    if (rank > 2) return relates_when(!is_like_output(node_.inputs[0]) || !is_like_output(node_.inputs[1]));
    return relates_when((gemm.flags & TN_TRANSPOSE_A) != 0 || !is_like_output(node_.inputs[0]) ||
                        by_step(node_.inputs[1]));
  }
  [[nodiscard]] std::string of(const Gather& /*gather*/) const {
    if (permutes(node_.inputs[1])) return when(!by_step(node_.inputs[0]));
    return when(by_step(node_.inputs[0]) || !is_like_output(node_.inputs[1]));
  }
  [[nodiscard]] std::string of_loop(const Loop& inner) const {
    const bool nested = order_around(graph_, inner.order) == order_;
    return nested ? "" : "cannot run within a step of another in this version";
  }
  [[nodiscard]] std::string of(const Move& move) const {
    bool relates = false;
    for (const MovePart& part : move.parts)
      relates = relates || !is_like_output(node_.inputs[part.input]) ||
                !same(part.box[0], graph_.spec(node_.outputs[0]).shape[0]) || part.axes[0] != 0;
    return when(relates);
  }
  // Images lie one after the other in the first dimension, filters are in no step.
  [[nodiscard]] std::string of_images() const {
    return when(std::any_of(node_.inputs.begin(), node_.inputs.end(), [this](ValueId input) {
      return input != kNoValue && by_step(input) && !is_like_output(input);
    }));
  }
  // Over the sequences that a step sees. Their offsets are those of the step then.
  [[nodiscard]] std::string of(const Segment& segment) const {
    const ValueId rows = segment.op == TN_SEGMENT_BROADCAST ? node_.outputs[0] : node_.inputs[0];
    return when(step_rows_of(graph_, rows) == nullptr || !by_step(node_.inputs[0]));
  }
  [[nodiscard]] std::string of(const View& /*view*/) const { return when(!by_step(node_.inputs[0])); }
  [[nodiscard]] std::string of(const Conv& /*conv*/) const { return of_images(); }
  [[nodiscard]] std::string of(const Pool& /*pool*/) const { return of_images(); }
  [[nodiscard]] std::string of(const Resize& /*resize*/) const { return of_images(); }
  [[nodiscard]] std::string of(const Argsort& /*argsort*/) const {
    return when(graph_.spec(node_.inputs[0]).shape.size() < 2);
  }
  [[nodiscard]] std::string of(const PrefixSum& /*sum*/) const {
    return when(graph_.spec(node_.inputs[0]).shape.size() < 2);
  }
  template <typename Other>
  [[nodiscard]] std::string of(const Other& /*operation*/) const {
    return "cannot run step by step in this version";
  }

  const Graph& graph_;
  const Node& node_;
  const int32_t order_;
};

// Whether a node sums over steps what each adds to the first rows of whole sequences.
bool is_sum(const Graph& graph, const Node& node, int32_t order) {
  return node.is<ScatterAdd>() &&
         std::any_of(graph.step_rows.begin(), graph.step_rows.end(), [&](const StepRows& rows) {
           return rows.order == order && rows.whole && rows.place == node.inputs[1];
         });
}

// Returns the nodes from which node `sum` is computed and which only the steps of the loop have to run before, itself
// included; none if one of them cannot.
std::set<size_t> parts_of(const Graph& graph, size_t sum, int32_t loop, const LoopRange& range) {
  const int32_t order = graph.loops[static_cast<size_t>(loop)].order;
  std::set<size_t> parts;
  std::vector<size_t> open = {sum};
  while (!open.empty()) {
    const size_t number = open.back();
    const Node& node = graph.nodes[number];
    open.pop_back();
    if (number != sum && !step_refusal(graph, node, order).empty()) return {};
    if (!parts.insert(number).second) continue;
    for (const ValueId input : node.inputs) {
      const int32_t producer = input == kNoValue ? -1 : graph.values[at(input)].producer;
      if (producer < 0 || !range.depends[at(input)]) continue;
      const auto made_by = static_cast<size_t>(producer);
      const Node& maker = graph.nodes[made_by];
      if (maker.is<Memory>() && loop_of_end(maker) == loop) continue;
      if (made_by < range.first || loop_of_end(maker) >= 0) return {};
      if (!range.stepwise[made_by - range.first]) open.push_back(made_by);
    }
  }
  return parts;
}

}  // namespace

LoopRange range_of(const Graph& graph, int32_t loop) {
  LoopRange range;
  range.first = first_memory(graph, loop);
  for (size_t i = range.first; i < graph.nodes.size(); ++i)
    if (const auto* last = graph.nodes[i].as<LastStep>(); last != nullptr && last->loop == loop) range.last = i;
  range.depends.assign(graph.values.size(), false);
  find_dependent(graph, loop, range);
  std::vector<bool> leads(graph.values.size(), false);
  range.stepwise.assign(range.last - range.first + 1, false);
  std::set<int32_t> inner;  // loops inside that lead to what is left
  for (bool more = true; more;) {
    more = false;
    for (size_t i = range.last + 1; i-- > range.first;) {
      const Node& node = graph.nodes[i];
      const int32_t of = loop_of_end(node);
      const bool own = of == loop;
      if (own ? node.is<Memory>() : !any(node.outputs, leads) && !inner.contains(of)) continue;
      if (!own && of >= 0) more = inner.insert(of).second || more;
      for (const ValueId input : node.inputs)
        if (input != kNoValue) leads[at(input)] = true;
      range.stepwise[i - range.first] = !own && depends_on_memory(node, range);
    }
  }
  return range;
}

void take_sums(const Graph& graph, int32_t loop, LoopRange& range) {
  for (size_t i = range.first; i <= range.last; ++i) {
    const Node& node = graph.nodes[i];
    if (!is_sum(graph, node, graph.loops[static_cast<size_t>(loop)].order) || !range.depends[at(node.inputs[0])])
      continue;
    for (const size_t part : parts_of(graph, i, loop, range)) range.stepwise[part - range.first] = true;
  }
}

bool depends_on_memory(const Node& node, const LoopRange& range) {
  return any(node.inputs, range.depends) || any(node.outputs, range.depends);
}

bool any(const std::vector<ValueId>& values, const std::vector<bool>& marked) {
  return std::any_of(values.begin(), values.end(),
                     [&](ValueId value) { return value != kNoValue && marked[at(value)]; });
}

int32_t loop_of_end(const Node& node) {
  if (const auto* const memory = node.as<Memory>()) return memory->loop;
  const auto* const last = node.as<LastStep>();
  return last == nullptr ? -1 : last->loop;
}

std::string step_refusal(const Graph& graph, const Node& node, int32_t order) {
  return StepCheck(graph, node, order).refusal();
}

}  // namespace tenon::core

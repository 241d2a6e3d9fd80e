// SPDX-License-Identifier: Apache-2.0
#include "core/graph/loops.h"

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/graph/loop_draws.h"
#include "core/graph/readers.h"

namespace tenon::core {

namespace {

size_t at(ValueId value) { return static_cast<size_t>(value); }

bool has_first(const Spec& spec, const Dim& dim) { return !spec.shape.empty() && same(spec.shape[0], dim); }

// The nodes of a loop, from its first Memory to its last LastStep, and which of them must run step by step.
struct Range {
  size_t first = 0, last = 0;
  std::vector<bool> depends;   // per value: it depends on what a memory finds
  std::vector<bool> stepwise;  // per node from `first` on: what is left in a memory depends on it, too
};

bool any(const std::vector<ValueId>& values, const std::vector<bool>& marked) {
  return std::any_of(values.begin(), values.end(),
                     [&](ValueId value) { return value != kNoValue && marked[at(value)]; });
}

Range range_of(const Graph& graph, int32_t loop) {
  Range range;
  range.first = first_memory(graph, loop);
  for (size_t i = range.first; i < graph.nodes.size(); ++i)
    if (const auto* last = graph.nodes[i].as<LastStep>(); last != nullptr && last->loop == loop) range.last = i;
  range.depends.assign(graph.values.size(), false);
  std::vector<bool> leads(graph.values.size(), false);
  for (size_t i = range.first; i <= range.last; ++i) {
    const Node& node = graph.nodes[i];
    if (!node.is<Memory>() && (node.is<LastStep>() || !any(node.inputs, range.depends))) continue;
    for (const ValueId output : node.outputs)
      if (output != kNoValue) range.depends[at(output)] = true;
  }
  range.stepwise.assign(range.last - range.first + 1, false);
  for (size_t i = range.last + 1; i-- > range.first;) {
    const Node& node = graph.nodes[i];
    if (node.is<Memory>()) continue;
    if (!node.is<LastStep>() && !any(node.outputs, leads)) continue;
    for (const ValueId input : node.inputs)
      if (input != kNoValue) leads[at(input)] = true;
    range.stepwise[i - range.first] = !node.is<LastStep>() && any(node.inputs, range.depends);
  }
  return range;
}

// Whether output number i of a program has an element for every row, which no other row has a part in.
bool is_by_row(const Program& program, size_t i) {
  const uint8_t extent = program.output_extent(i);
  return extent == TN_FULL || extent == TN_PER_ROW;
}

// Why a node cannot run step by step; "" if it can.
class StepCheck {
 public:
  StepCheck(const Graph& graph, const Node& node, const Dim& steps) : graph_(graph), node_(node), steps_(steps) {}

  [[nodiscard]] std::string refusal() const {
    for (const ValueId output : node_.outputs)
      if (output != kNoValue && !by_step(output)) return "relates different steps";
    return std::visit([&](const auto& operation) { return of(operation); }, node_.operation);
  }

 private:
  static constexpr const char* kRelates = "relates different steps";
  [[nodiscard]] bool by_step(ValueId value) const { return has_first(graph_.spec(value), steps_); }
  [[nodiscard]] std::string when(bool relates) const { return relates ? kRelates : ""; }

  [[nodiscard]] std::string of(const Pointwise& pointwise) const {
    const Program& program = *pointwise.program;
    if (program.draws()) return "draws; draw from a value that no memory has a part in";
    bool relates = pointwise.leading < 1 || !same(pointwise.whole[0], steps_);
    for (const tn_instruction& in : program.instructions) {
      const bool reduces = in.op == TN_OP_REDUCE_SUM || in.op == TN_OP_REDUCE_MAX || in.op == TN_OP_REDUCE_MIN;
      relates = relates ||
                (reduces && in.extent != TN_PER_ROW && program.extents[static_cast<size_t>(in.a)] != TN_PER_COLUMN);
    }
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      const uint8_t extent = program.inputs[i].extent;
      relates = relates || ((extent == TN_FULL || extent == TN_PER_ROW) != by_step(node_.inputs[i]));
    }
    return when(relates);
  }
  [[nodiscard]] std::string of(const Gemm& gemm) const {
    const size_t rank = graph_.spec(node_.inputs[0]).shape.size();
    if (rank > 2) return when(!by_step(node_.inputs[0]) || !by_step(node_.inputs[1]));
    return when((gemm.flags & TN_TRANSPOSE_A) != 0 || !by_step(node_.inputs[0]) || by_step(node_.inputs[1]));
  }
  [[nodiscard]] std::string of(const Gather& /*gather*/) const {
    return when(by_step(node_.inputs[0]) || !by_step(node_.inputs[1]));
  }
  [[nodiscard]] std::string of(const Move& move) const {
    bool relates = false;
    for (const MovePart& part : move.parts)
      relates = relates || !by_step(node_.inputs[part.input]) || !same(part.box[0], steps_) || part.axes[0] != 0;
    return when(relates);
  }
  [[nodiscard]] std::string of(const View& /*view*/) const { return when(!by_step(node_.inputs[0])); }
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
  const Dim& steps_;
};

// Lays out one loop.
class Arrangement {
 public:
  Arrangement(Graph& graph, int32_t number)
      : graph_(graph), number_(number), loop_(graph.loops[static_cast<size_t>(number)]) {}

  void run() {
    split_reductions();
    const Range range = range_of(graph_, number_);
    for (size_t i = range.first; i <= range.last; ++i) {
      Node& node = graph_.nodes[i];
      if (node.is<Memory>()) {
        memories_.push_back(std::move(node));
      } else if (node.is<LastStep>()) {
        ends_.push_back(std::move(node));
      } else if (range.stepwise[i - range.first]) {
        steps_.push_back(std::move(node));
      } else {
        (any(node.inputs, range.depends) ? after_ : before_).push_back(std::move(node));
      }
    }
    for (Node& memory : memories_) place(memory);
    for (Node& node : steps_) node.loop = number_;
    std::vector<Node> rest(std::make_move_iterator(graph_.nodes.begin() + static_cast<std::ptrdiff_t>(range.last) + 1),
                           std::make_move_iterator(graph_.nodes.end()));
    for (Node& node : after_) read_whole(node);
    for (Node& node : rest) read_whole(node);
    graph_.nodes.resize(range.first);
    for (auto* list : {&before_, &memories_, &steps_, &whole_}) append(*list);
    for (const Node& end : ends_) append_last(end);
    append(after_);
    append(rest);
    graph_.renumber();
  }

 private:
  // Divides programs that make values for each step and sums over the steps: the sums wait until the loop has ended.
  void split_reductions() {
    const Range range = range_of(graph_, number_);
    std::vector<Node> nodes;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      Node& node = graph_.nodes[i];
      const bool stepwise = i >= range.first && i <= range.last && range.stepwise[i - range.first];
      const auto* const pointwise = node.as<Pointwise>();
      nodes.push_back(node);
      if (!stepwise || pointwise == nullptr) continue;
      size_t by_row = 0;
      for (size_t k = 0; k < node.outputs.size(); ++k) by_row += is_by_row(*pointwise->program, k) ? 1 : 0;
      if (by_row == node.outputs.size()) continue;
      nodes.back() = part_of(node, true);
      nodes.push_back(part_of(node, false));
    }
    graph_.nodes = std::move(nodes);
    graph_.renumber();
  }

  // Returns a pointwise node with the outputs by row alone, or with the others alone.
  static Node part_of(const Node& node, bool by_row) {
    Node part = node;
    Program program = *node.as<Pointwise>()->program;
    const std::vector<tn_program_output> outputs = std::move(program.outputs);
    program.outputs.clear();
    part.outputs.clear();
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (is_by_row(*node.as<Pointwise>()->program, i) != by_row) continue;
      program.outputs.push_back(outputs[i]);
      part.outputs.push_back(node.outputs[i]);
    }
    const TrimmedProgram trimmed = trim_inputs(program);
    part.inputs.clear();
    for (const int32_t kept : trimmed.kept) part.inputs.push_back(node.inputs[static_cast<size_t>(kept)]);
    part.as<Pointwise>()->program = std::make_shared<Program>(trimmed.program);
    return part;
  }

  // Gives a memory its states, in which it finds and leaves values.
  void place(Node& memory) {
    const StepOrder& order = graph_.orders[static_cast<size_t>(loop_.order)];
    memory.loop = number_;
    Spec spec = graph_.spec(memory.outputs[0]);
    spec.shape[0] = order.states;
    const ValueId states = graph_.add_value(spec, -1);
    states_[memory.outputs[0]] = states;
    memory.outputs.push_back(states);
    put(memory.outputs[0], states, loop_.backward ? StatePlace::kOfStep : StatePlace::kBefore);
    const ValueId left = memory.inputs[1];
    const bool by_node = std::any_of(steps_.begin(), steps_.end(), [&](const Node& node) {
      return !node.is<View>() && std::find(node.outputs.begin(), node.outputs.end(), left) != node.outputs.end();
    });
    if (!by_node || graph_.values[at(left)].place != StatePlace::kNone) memory.inputs[1] = copied(memory, left);
    put(memory.inputs[1], states, loop_.backward ? StatePlace::kBefore : StatePlace::kOfStep);
    memory.inputs.push_back(loop_.backward ? order.last : order.initial);
  }

  void put(ValueId value, ValueId states, StatePlace place) {
    graph_.values[at(value)].alias_of = states;
    graph_.values[at(value)].place = place;
  }

  // Appends a copy of a value that cannot be computed in the states itself.
  ValueId copied(const Node& memory, ValueId value) {
    Graph& graph = graph_;
    std::vector<Node> nodes = std::move(graph.nodes);
    graph.nodes.clear();
    ProgramWriter program;
    const tn_dtype dtype = graph.spec(value).dtype;
    const uint8_t kind = is_float(dtype) ? TN_FLOAT : dtype == TN_BOOL ? TN_LOGICAL : TN_INT;
    program.output(program.input(TN_FULL, kind), dtype);
    const ValueId made = GraphWriter(graph, memory.layer, memory.backward, graph.compute)
                             .pointwise(std::make_shared<Program>(program.finish()), {value}, 1)[0];
    steps_.push_back(std::move(graph.nodes.back()));
    graph.nodes = std::move(nodes);
    return made;
  }

  // Lets a node that runs once read values of all steps where they are in one piece.
  void read_whole(Node& node) {
    for (ValueId& input : node.inputs)
      if (input != kNoValue) input = whole(input);
    if (node.is<View>() && graph_.values[at(node.outputs[0])].place == StatePlace::kNone)
      graph_.values[at(node.outputs[0])].alias_of = graph_.root(node.inputs[0]);
  }

  // Returns the value itself, or, where each step finds it in the state of the step before, a copy in order.
  ValueId whole(ValueId value) {
    ValueId source = value;
    while (graph_.values[at(source)].place == StatePlace::kNone && graph_.values[at(source)].alias_of != kNoValue)
      source = graph_.values[at(source)].alias_of;
    if (graph_.values[at(source)].place != StatePlace::kBefore) return value;
    if (const auto known = copies_.find(value); known != copies_.end()) return known->second;
    const ValueId states = graph_.values[at(source)].alias_of;
    if (std::none_of(states_.begin(), states_.end(), [&](const auto& each) { return each.second == states; }))
      return value;  // of another loop
    ValueId made = kNoValue;
    if (source == value) {
      made = graph_.add_value({graph_.spec(value).dtype, graph_.spec(value).shape, TN_DENSE, 0, {}}, -1);
      Node gather = like(memories_.front());
      gather.operation = Gather();
      gather.inputs = {states, graph_.orders[static_cast<size_t>(loop_.order)].before};
      gather.outputs = {made};
      whole_.push_back(std::move(gather));
    } else {
      const ValueId copy = whole(source);
      made = graph_.add_value({graph_.spec(value).dtype, graph_.spec(value).shape, TN_DENSE, 0, {}}, -1);
      graph_.values[at(made)].alias_of = copy;
      Node view = like(memories_.front());
      view.operation = View();
      view.inputs = {copy};
      view.outputs = {made};
      whole_.push_back(std::move(view));
    }
    copies_[value] = made;
    return made;
  }

  static Node like(const Node& other) {
    Node node;
    node.layer = other.layer;
    node.backward = other.backward;
    return node;
  }

  void append_last(const Node& end) {
    const StepOrder& order = graph_.orders[static_cast<size_t>(loop_.order)];
    Node gather = like(end);
    gather.operation = Gather();
    gather.inputs = {states_.at(end.as<LastStep>()->memory), loop_.backward ? order.initial : order.last};
    gather.outputs = end.outputs;
    graph_.nodes.push_back(std::move(gather));
  }

  void append(std::vector<Node>& list) {
    for (Node& node : list) graph_.nodes.push_back(std::move(node));
  }

  Graph& graph_;
  const int32_t number_;
  const Loop loop_;
  std::vector<Node> before_, memories_, steps_, whole_, ends_, after_;  // of the range
  std::map<ValueId, ValueId> states_;                                   // by what a memory finds
  std::map<ValueId, ValueId> copies_;                                   // by value
};

}  // namespace

const StepOrder* order_of(const Graph& graph, ValueId value) {
  for (const StepOrder& order : graph.orders)
    if (has_first(graph.spec(value), order.steps)) return &order;
  return nullptr;
}

size_t first_memory(const Graph& graph, int32_t loop) {
  const auto found = std::find_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    const auto* const memory = node.as<Memory>();
    return memory != nullptr && memory->loop == loop;
  });
  return static_cast<size_t>(found - graph.nodes.begin());
}

LoopFault end_loop(Graph& graph, int32_t loop) {
  const Range drawing = range_of(graph, loop);
  hoist_draws(graph, drawing.first, drawing.stepwise);
  const Range range = range_of(graph, loop);
  const Dim& steps = graph.orders[static_cast<size_t>(graph.loops[static_cast<size_t>(loop)].order)].steps;
  for (size_t i = range.first; i <= range.last; ++i) {
    if (!range.stepwise[i - range.first]) continue;
    const Node& node = graph.nodes[i];
    std::string refusal = StepCheck(graph, node, steps).refusal();
    if (!refusal.empty()) return {node.layer, primitive_name(node.operation), std::move(refusal)};
  }
  return {};
}

void arrange_loops(Graph& graph) {
  for (size_t i = 0; i < graph.loops.size(); ++i)
    if (first_memory(graph, static_cast<int32_t>(i)) < graph.nodes.size())
      Arrangement(graph, static_cast<int32_t>(i)).run();
}

std::vector<int32_t> values_of_steps(const Graph& graph, const std::vector<ValueId>& kept) {
  std::vector<int32_t> steps(graph.values.size(), -1);
  if (graph.loops.empty()) return steps;
  for (const Node& node : graph.nodes)
    if (!node.is<Memory>())
      for (const ValueId output : node.outputs)
        if (output != kNoValue && graph.root(output) == output) steps[at(output)] = node.loop;
  for (const Node& node : graph.nodes)
    for (const ValueId input : node.inputs)
      if (input != kNoValue && steps[at(graph.root(input))] != node.loop) steps[at(graph.root(input))] = -1;
  for (const ValueId value : kept)
    if (value != kNoValue) steps[at(graph.root(value))] = -1;
  return steps;
}

}  // namespace tenon::core

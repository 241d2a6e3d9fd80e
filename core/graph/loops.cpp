// SPDX-License-Identifier: Apache-2.0
#include "core/graph/loops.h"

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/graph/loop_range.h"
#include "core/graph/readers.h"

namespace tenon::core {

namespace {

// Whether output number i of a program has an element for every row, which no other row has a part in.
bool is_by_row(const Program& program, size_t i) {
  const uint8_t extent = program.output_extent(i);
  return extent == TN_FULL || extent == TN_PER_ROW;
}

// Lays out one loop.
class Arrangement {
 public:
  Arrangement(Graph& graph, int32_t number)
      : graph_(graph),
        number_(number),
        loop_(graph.loops[static_cast<size_t>(number)]),
        around_(graph.nodes[first_memory(graph, number)].loop) {}

  void run() {
    graph_.loops[static_cast<size_t>(number_)].around = around_;
    split_reductions();
    find_sequences();
    LoopRange range = range_of(graph_, number_);
    take_sums(graph_, number_, range);
    for (size_t i = range.first; i <= range.last; ++i) {
      Node& node = graph_.nodes[i];
      const bool own = loop_of_end(node) == number_;
      if (own && node.is<Memory>()) {
        memories_.push_back(std::move(node));
      } else if (own) {
        ends_.push_back(std::move(node));
      } else if (range.stepwise[i - range.first]) {
        steps_.push_back(std::move(node));
      } else {
        (depends_on_memory(node, range) ? after_ : before_).push_back(std::move(node));
      }
    }
    for (Node& memory : memories_) place(memory);
    spread_again(range.first);
    for (Node& node : steps_) {
      node.loop = number_;
      for (ValueId& input : node.inputs)
        if (input != kNoValue) input = in_place(input);
    }
    std::vector<Node> rest(std::make_move_iterator(graph_.nodes.begin() + static_cast<std::ptrdiff_t>(range.last) + 1),
                           std::make_move_iterator(graph_.nodes.end()));
    for (Node& node : after_) read_whole(node);
    for (Node& node : rest) read_whole(node);
    graph_.nodes.resize(range.first);
    for (auto* list : {&before_, &in_place_, &memories_, &steps_, &whole_}) append(*list);
    for (const Node& end : ends_) append_last(end);
    append(after_);
    append(rest);
    graph_.renumber();
  }

 private:
  // Divides programs that make values for each step and sums over the steps: the sums wait until the loop has ended.
  void split_reductions() {
    const LoopRange range = range_of(graph_, number_);
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

  // Finds the nodes that read whole sequences for all steps, and views of their results.
  void find_sequences() {
    for (const Node& node : graph_.nodes) {
      const bool reads =
          node.is<Gather>() && std::any_of(graph_.step_rows.begin(), graph_.step_rows.end(), [&](const StepRows& rows) {
            return rows.order == loop_.order && rows.whole && rows.place == node.inputs[1];
          });
      if (reads || (node.is<View>() && sequences_.contains(node.inputs[0]))) sequences_[node.outputs[0]] = node;
    }
  }

  // Lets the steps of a backward loop give the rows that they see a value again, where the forward loop has done so:
  // else what it gave them would be kept for all steps. end: of the nodes before the loop.
  void spread_again(size_t end) {
    std::vector<Node> steps;
    std::map<ValueId, ValueId> spread;
    for (Node& node : steps_) {
      for (ValueId& input : node.inputs) {
        const int32_t producer = input == kNoValue ? -1 : graph_.values[at(input)].producer;
        if (!loop_.backward || producer < 0 || static_cast<size_t>(producer) >= end) continue;
        const Node& maker = graph_.nodes[static_cast<size_t>(producer)];
        const auto* const segment = maker.as<Segment>();
        if (segment == nullptr || segment->op != TN_SEGMENT_BROADCAST || maker.loop < 0 || maker.backward) continue;
        const auto [known, fresh] = spread.try_emplace(input, kNoValue);
        if (fresh) {
          steps.push_back(maker);
          steps.back().backward = true;
          known->second = graph_.add_value({graph_.spec(input).dtype, graph_.spec(input).shape, TN_DENSE, 0, {}}, -1);
          steps.back().outputs = {known->second};
        }
        input = known->second;
      }
      steps.push_back(std::move(node));
    }
    steps_ = std::move(steps);
  }

  // Returns, for rows of whole sequences, a value by which steps see the rows where they lie, so that nothing is copied
  // for each step; for others the value itself.
  ValueId in_place(ValueId value) {
    const auto of = sequences_.find(value);
    if (of == sequences_.end()) return value;
    if (const auto known = seen_.find(value); known != seen_.end()) return known->second;
    Node node = of->second;
    const ValueId from = node.is<View>() ? in_place(node.inputs[0]) : node.inputs[0];
    const ValueId made = graph_.add_value({graph_.spec(value).dtype, graph_.spec(value).shape, TN_DENSE, 0, {}}, -1);
    put(made, from, StepPlace::kPrefix);
    node.inputs[0] = from;
    node.outputs = {made};
    node.backward = loop_.backward;
    node.loop = around_;
    in_place_.push_back(std::move(node));
    return seen_[value] = made;
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
    put(memory.outputs[0], states, loop_.backward ? StepPlace::kOfStep : StepPlace::kBefore);
    const ValueId left = memory.inputs[1];
    const bool by_node = std::any_of(steps_.begin(), steps_.end(), [&](const Node& node) {
      return !node.is<View>() && std::find(node.outputs.begin(), node.outputs.end(), left) != node.outputs.end();
    });
    if (!by_node || graph_.values[at(left)].place != StepPlace::kNone) memory.inputs[1] = copied(memory, left);
    put(memory.inputs[1], states, loop_.backward ? StepPlace::kBefore : StepPlace::kOfStep);
    memory.inputs.push_back(loop_.backward ? order.last : order.initial);
    // The loop around finds by them what its steps have of this one.
    if (around_ >= 0) memory.inputs.push_back(graph_.rows.at(order.rows).offsets);
  }

  void put(ValueId value, ValueId source, StepPlace place) {
    graph_.values[at(value)].alias_of = source;
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
    bool moved = false;
    for (ValueId& input : node.inputs) {
      if (input == kNoValue) continue;
      const ValueId found = whole(input);
      moved = moved || found != input;
      input = found;
    }
    if (node.is<View>() && moved) graph_.values[at(node.outputs[0])].alias_of = graph_.root(node.inputs[0]);
  }

  // Returns the value itself, or, where each step finds it in the state of the step before, a copy in order.
  ValueId whole(ValueId value) {
    ValueId source = value;
    while (graph_.values[at(source)].place == StepPlace::kNone && graph_.values[at(source)].alias_of != kNoValue)
      source = graph_.values[at(source)].alias_of;
    if (graph_.values[at(source)].place != StepPlace::kBefore) return value;
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

  // Returns a node for the same layer, which runs once, or once for each step of the loop around.
  [[nodiscard]] Node like(const Node& other) const {
    Node node;
    node.layer = other.layer;
    node.backward = other.backward;
    node.loop = around_;
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
  const int32_t around_;  // the loop within whose steps it runs, which is laid out already; -1: none
  std::vector<Node> before_, memories_, steps_, whole_, ends_, after_;  // of the range
  std::map<ValueId, ValueId> states_;                                   // by what a memory finds
  std::map<ValueId, ValueId> copies_;                                   // by value
  std::map<ValueId, Node> sequences_;  // by rows of whole sequences for all steps: the node that reads them
  std::map<ValueId, ValueId> seen_;    // by such a value: what steps see
  std::vector<Node> in_place_;         // of the values in seen_
};

}  // namespace

const StepOrder* order_of(const Graph& graph, ValueId value) {
  for (const StepOrder& order : graph.orders)
    if (!graph.spec(value).shape.empty() && same(graph.spec(value).shape[0], order.steps)) return &order;
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
  const LoopRange drawing = range_of(graph, loop);
  hoist_draws(graph, drawing.first, drawing.stepwise);
  const LoopRange range = range_of(graph, loop);
  const int32_t order = graph.loops[static_cast<size_t>(loop)].order;
  for (size_t i = range.first; i <= range.last; ++i) {
    if (!range.stepwise[i - range.first]) continue;
    const Node& node = graph.nodes[i];
    std::string refusal = step_refusal(graph, node, order);
    const char* const what = loop_of_end(node) < 0 ? primitive_name(node.operation) : "scan";
    if (!refusal.empty()) return {node.layer, what, std::move(refusal)};
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

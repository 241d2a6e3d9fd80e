// Fuses neighbouring pointwise nodes and removes nodes without readers. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "core/graph/passes/passes.h"
#include "core/graph/readers.h"

namespace tenon::core {

namespace {

bool same_grid(const Pointwise& a, const Pointwise& b) { return same(a.rows, b.rows) && same(a.columns, b.columns); }

// A fused program has at most this many instructions, unless a single layer has more. A longer program would save no
// memory traffic to speak of, but registers, operands and phases of the grid grow with the length.
constexpr size_t kMostInstructions = 256;

// A pointwise node and the later ones that are fused into it.
class PointwiseGroup {
 public:
  explicit PointwiseGroup(Node first) : node_(std::move(first)) {
    const Program& program = *grid().program;
    for (const tn_program_input& input : program.inputs) inputs_.push_back(writer_.input(input.extent, input.kind));
    append(program, inputs_);
  }

  // Whether `later` can be fused into the group. Both belong to one phase and share an operand, on the same grid (a
  // flat program runs on any grid with as many elements). Outputs of the group that `later` reads must be floats in the
  // compute type, read with the same extent: a fused program does not round values to other types.
  [[nodiscard]] bool takes(const Node& later) const {
    const Pointwise& other = *later.as<Pointwise>();
    if (node_.backward != later.backward || node_.loop != later.loop) return false;
    if (length_ + other.program->instructions.size() > kMostInstructions) return false;
    const bool flat = flat_ || other.program->is_flat();
    if (!same_grid(grid(), other) && !(flat && same(elements(grid().whole), elements(other.whole)))) return false;
    bool shares = false;
    for (size_t i = 0; i < later.inputs.size(); ++i) {
      const ValueId input = later.inputs[i];
      shares = shares || std::find(node_.inputs.begin(), node_.inputs.end(), input) != node_.inputs.end();
      const auto made = std::find(node_.outputs.begin(), node_.outputs.end(), input);
      if (made == node_.outputs.end()) continue;
      const tn_program_output& value = outputs_[static_cast<size_t>(made - node_.outputs.begin())];
      if (writer_.kind(value.value) != TN_FLOAT || value.dtype != TN_COMPUTE) return false;
      if (other.program->inputs[i].kind != TN_FLOAT) return false;
      if (writer_.extent(value.value) != other.program->inputs[i].extent) return false;
      shares = true;
    }
    return shares;
  }

  void add(const Node& later) {
    const Pointwise& other = *later.as<Pointwise>();
    std::vector<int32_t> operands;
    for (size_t i = 0; i < later.inputs.size(); ++i)
      operands.push_back(operand(later.inputs[i], other.program->inputs[i]));
    if (flat_) {  // a flat program runs on any grid, so the grid of `later` suits both
      grid().rows = other.rows;
      grid().columns = other.columns;
      grid().whole = other.whole;
      grid().leading = other.leading;
    }
    append(*other.program, operands);
    node_.outputs.insert(node_.outputs.end(), later.outputs.begin(), later.outputs.end());
    node_.serve(later);
    grown_ = true;
  }

  // Returns the fused node; the group is empty afterwards.
  Node take() {
    if (grown_) {
      TrimmedProgram trimmed = writer_.finish_trimmed();
      std::vector<ValueId> inputs;
      for (const int32_t kept : trimmed.kept) inputs.push_back(node_.inputs[at(kept)]);
      node_.inputs = std::move(inputs);
      grid().program = std::make_shared<Program>(std::move(trimmed.program));
    }
    return std::move(node_);
  }

 private:
  [[nodiscard]] Pointwise& grid() { return *node_.as<Pointwise>(); }
  [[nodiscard]] const Pointwise& grid() const { return *node_.as<Pointwise>(); }

  void append(const Program& program, const std::vector<int32_t>& operands) {
    const std::vector<int32_t> values = writer_.inline_program(program, operands);
    for (const tn_program_output& output : program.outputs) {
      outputs_.push_back({values[at(output.value)], output.dtype});
      writer_.output(outputs_.back().value, output.dtype);
    }
    flat_ = flat_ && program.is_flat();
    length_ += program.instructions.size();
  }

  // Returns the value of an operand in the program; adds an input if the group neither computes nor reads it.
  int32_t operand(ValueId value, const tn_program_input& wanted) {
    for (size_t j = 0; j < node_.outputs.size(); ++j)
      if (node_.outputs[j] == value) return outputs_[j].value;
    for (size_t j = 0; j < node_.inputs.size(); ++j)
      if (node_.inputs[j] == value && writer_.extent(inputs_[j]) == wanted.extent &&
          writer_.kind(inputs_[j]) == wanted.kind)
        return inputs_[j];
    node_.inputs.push_back(value);
    inputs_.push_back(writer_.input(wanted.extent, wanted.kind));
    return inputs_.back();
  }

  Node node_;                    // the first node, with the inputs and outputs of all, and its own program until take
  ProgramWriter writer_;         // the program of all nodes
  std::vector<int32_t> inputs_;  // per input of node_: its value in the program
  std::vector<tn_program_output> outputs_;  // per output of node_
  bool flat_ = true;                        // all programs are flat
  size_t length_ = 0;                       // instructions of all programs
  bool grown_ = false;
};

class Fusion {
 public:
  Fusion(Graph& graph, const std::vector<ValueId>& kept)
      : graph_(graph), kept_(graph.values.size(), false), users_(graph.values.size()) {
    for (const ValueId value : kept)
      if (value != kNoValue) kept_[at(value)] = kept_[at(graph.root(value))] = true;
  }

  void run() {
    remove_dead();
    std::vector<Node> old = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (Node& node : old) place(std::move(node));
    for (auto& [number, group] : groups_) graph_.nodes[number] = group.take();
    drop_internal_outputs();
    remove_dead();
  }

 private:
  // One sweep from the last node to the first finds what is read, but memories also read what later nodes compute. A
  // node whose output lies in another value, such as the states of a memory that no step reads, needs that value.
  void remove_dead() {
    std::vector<bool> read = kept_;
    std::vector<bool> dead(graph_.nodes.size(), true);
    for (bool more = true; more;) {
      more = false;
      for (size_t i = graph_.nodes.size(); i-- > 0;) {
        const Node& node = graph_.nodes[i];
        if (!dead[i] || std::none_of(node.outputs.begin(), node.outputs.end(),
                                     [&](ValueId value) { return value != kNoValue && read[at(value)]; }))
          continue;
        dead[i] = false;
        more = more || node.is<Memory>();
        for (const ValueId input : node.inputs)
          if (input != kNoValue) read[at(input)] = true;
        for (const ValueId output : node.outputs) {
          if (output == kNoValue || read[at(graph_.root(output))]) continue;
          read[at(graph_.root(output))] = true;
          more = more || graph_.root(output) != output;
        }
      }
    }
    remove_nodes(graph_, dead);
  }

  // Appends a node, or fuses it into an earlier one.
  void place(Node node) {
    size_t number = graph_.nodes.size();
    if (node.is<Pointwise>()) {
      if (const std::optional<size_t> group = group_for(node)) number = *group;
      for (const auto* values : {&node.inputs, &node.outputs})
        for (const ValueId value : *values) add_user(value, number);
    }
    for (const ValueId output : node.outputs)
      if (output != kNoValue) graph_.values[at(output)].producer = static_cast<int32_t>(number);
    if (number < graph_.nodes.size()) return groups_.at(number).add(node);
    const bool may_grow = node.is<Pointwise>();
    Node& placed = graph_.nodes.emplace_back();  // of a group: left empty until the group is complete
    if (may_grow)
      groups_.emplace(number, std::move(node));
    else
      placed = std::move(node);
  }

  void add_user(ValueId value, size_t group) {
    std::vector<size_t>& users = users_[at(value)];
    const auto place = std::lower_bound(users.begin(), users.end(), group);
    if (place == users.end() || *place != group) users.insert(place, group);
  }

  // Returns the number of the last group that takes the node: of those that share an operand with it, and that compute
  // each of its inputs or come after the node that does.
  std::optional<size_t> group_for(const Node& node) const {
    int32_t newest = 0;  // the last node that computes an input
    for (const ValueId input : node.inputs) newest = std::max(newest, graph_.values[at(input)].producer);
    std::vector<size_t> candidates;
    for (const ValueId input : node.inputs) {
      const std::vector<size_t>& users = users_[at(input)];
      candidates.insert(candidates.end(), std::lower_bound(users.begin(), users.end(), static_cast<size_t>(newest)),
                        users.end());
    }
    std::sort(candidates.rbegin(), candidates.rend());
    candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
    const auto found = std::find_if(candidates.begin(), candidates.end(),
                                    [&](size_t number) { return groups_.at(number).takes(node); });
    return found == candidates.end() ? std::nullopt : std::optional(*found);
  }

  // Removes outputs without readers from programs and native kernels. A kernel of one layer keeps its layer outputs; a
  // kernel that makes rows keeps their offsets and counts.
  void drop_internal_outputs() {
    std::vector<bool> read = kept_;
    for (const Node& node : graph_.nodes)
      for (const ValueId input : node.inputs)
        if (input != kNoValue) read[at(input)] = true;
    for (Node& node : graph_.nodes) {
      if (const auto* const native = node.as<NativeCall>()) {
        const NativeOperands& of = native->operands;
        for (size_t i = node.backward || !node.fused.empty() ? 0 : of.outputs; i < node.outputs.size(); ++i) {
          ValueId& output = node.outputs[i];
          const bool makes_rows = !node.backward && i >= of.outputs + of.buffers + of.carried && i < of.first_saved();
          if (output != kNoValue && !read[at(output)] && !makes_rows) output = kNoValue;
        }
      }
      auto* const pointwise = node.as<Pointwise>();
      if (pointwise == nullptr) continue;
      const auto is_read = [&](ValueId output) { return read[at(output)]; };
      const auto readers = std::count_if(node.outputs.begin(), node.outputs.end(), is_read);
      if (readers == 0 || static_cast<size_t>(readers) == node.outputs.size()) continue;
      Program program = *pointwise->program;
      std::vector<ValueId> outputs;
      program.outputs.clear();
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (!is_read(node.outputs[i])) continue;
        outputs.push_back(node.outputs[i]);
        program.outputs.push_back(pointwise->program->outputs[i]);
      }
      TrimmedProgram trimmed = trim_inputs(program);
      std::vector<ValueId> inputs;
      for (const int32_t kept : trimmed.kept) inputs.push_back(node.inputs[at(kept)]);
      node.inputs = std::move(inputs);
      node.outputs = std::move(outputs);
      pointwise->program = std::make_shared<Program>(std::move(trimmed.program));
    }
  }

  Graph& graph_;
  std::vector<bool> kept_;
  std::map<size_t, PointwiseGroup> groups_;  // by the number of the node
  std::vector<std::vector<size_t>> users_;   // per value: the groups that read or compute it, in ascending order
};

}  // namespace

void fuse(Graph& graph, const std::vector<ValueId>& kept) { Fusion(graph, kept).run(); }

}  // namespace tenon::core

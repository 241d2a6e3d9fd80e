// Fuses neighbouring pointwise nodes and removes nodes without readers. SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/graph/passes.h"

namespace tenon::core {

namespace {

size_t at(ValueId value) { return static_cast<size_t>(value); }

bool same_grid(const Pointwise& a, const Pointwise& b) { return same(a.rows, b.rows) && same(a.columns, b.columns); }

class Fusion {
 public:
  Fusion(Graph& graph, const std::vector<ValueId>& kept) : graph_(graph), kept_(graph.values.size(), false) {
    for (const ValueId value : kept)
      if (value != kNoValue) kept_[at(value)] = kept_[at(graph.root(value))] = true;
  }

  void run() {
    remove_dead();
    std::vector<Node> old = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (Node& node : old) place(std::move(node));
    drop_internal_outputs();
    remove_dead();
  }

 private:
  void remove_dead() {
    std::vector<bool> read = kept_;
    std::vector<Node> alive;
    for (size_t i = graph_.nodes.size(); i-- > 0;) {
      Node& node = graph_.nodes[i];
      const bool needed = std::any_of(node.outputs.begin(), node.outputs.end(),
                                      [&](ValueId value) { return value != kNoValue && read[at(value)]; });
      if (!needed) continue;
      for (const ValueId input : node.inputs)
        if (input != kNoValue) read[at(input)] = true;
      alive.push_back(std::move(node));
    }
    std::reverse(alive.begin(), alive.end());
    graph_.nodes = std::move(alive);
    graph_.renumber();
  }

  // Appends a node, or fuses it into an earlier one: every input must be computed before that node or by it.
  void place(Node node) {
    if (node.is<Pointwise>()) {
      int32_t newest = -1;  // the last node that computes an input
      for (const ValueId input : node.inputs) newest = std::max(newest, graph_.values[at(input)].producer);
      for (size_t i = graph_.nodes.size(); i-- > 0 && static_cast<int32_t>(i) >= newest;)
        if (joinable(graph_.nodes[i], node)) {
          join(graph_.nodes[i], node);
          for (const ValueId output : graph_.nodes[i].outputs)
            graph_.values[at(output)].producer = static_cast<int32_t>(i);
          return;
        }
    }
    const auto number = static_cast<int32_t>(graph_.nodes.size());
    for (const ValueId output : node.outputs)
      if (output != kNoValue) graph_.values[at(output)].producer = number;
    graph_.nodes.push_back(std::move(node));
  }

  // Whether `later` can be fused into `earlier`. Both are pointwise nodes of the same phase that share an operand, on
  // the same grid (a flat program runs on any grid with as many elements). Outputs of `earlier` that `later` reads must
  // be floats in the compute type, read with the same extent: a fused program does not round values to other types.
  [[nodiscard]] static bool joinable(const Node& earlier, const Node& later) {
    if (!earlier.is<Pointwise>() || earlier.backward != later.backward) return false;
    const Pointwise &first = *earlier.as<Pointwise>(), &second = *later.as<Pointwise>();
    const bool flat = first.program->is_flat() || second.program->is_flat();
    if (!same_grid(first, second) && !(flat && same(elements(first.whole), elements(second.whole)))) return false;
    bool shares = false;
    for (size_t i = 0; i < later.inputs.size(); ++i) {
      const ValueId input = later.inputs[i];
      shares = shares || std::find(earlier.inputs.begin(), earlier.inputs.end(), input) != earlier.inputs.end();
      const auto made = std::find(earlier.outputs.begin(), earlier.outputs.end(), input);
      if (made == earlier.outputs.end()) continue;
      const auto output = static_cast<size_t>(made - earlier.outputs.begin());
      const tn_program_output& value = first.program->outputs[output];
      if (first.program->instructions[at(value.value)].kind != TN_FLOAT || value.dtype != TN_COMPUTE) return false;
      if (second.program->inputs[i].kind != TN_FLOAT) return false;
      if (first.program->output_extent(output) != second.program->inputs[i].extent) return false;
      shares = true;
    }
    return shares;
  }

  void join(Node& earlier, const Node& later) {
    Pointwise& grid = *earlier.as<Pointwise>();
    const Pointwise& other = *later.as<Pointwise>();
    ProgramWriter writer;
    std::vector<ValueId> inputs = earlier.inputs;
    std::vector<int32_t> first_inputs;
    for (const tn_program_input& input : grid.program->inputs)
      first_inputs.push_back(writer.input(input.extent, input.kind));
    const std::vector<int32_t> first = writer.inline_program(*grid.program, first_inputs);
    std::vector<int32_t> second_inputs;
    for (size_t i = 0; i < later.inputs.size(); ++i)
      second_inputs.push_back(operand(writer, earlier, first_inputs, first, later, i, inputs));
    const std::vector<int32_t> second = writer.inline_program(*other.program, second_inputs);
    for (const tn_program_output& output : grid.program->outputs) writer.output(first[at(output.value)], output.dtype);
    for (const tn_program_output& output : other.program->outputs)
      writer.output(second[at(output.value)], output.dtype);

    if (grid.program->is_flat()) {  // a flat program runs on any grid, so the grid of `later` suits both
      grid.rows = other.rows;
      grid.columns = other.columns;
      grid.whole = other.whole;
      grid.leading = other.leading;
    }
    const TrimmedProgram trimmed = trim_inputs(writer.finish());
    earlier.inputs.clear();
    for (const int32_t kept : trimmed.kept) earlier.inputs.push_back(inputs[at(kept)]);
    grid.program = std::make_shared<Program>(trimmed.program);
    earlier.outputs.insert(earlier.outputs.end(), later.outputs.begin(), later.outputs.end());
    earlier.serve(later);
  }

  // Returns the value in the fused program of input number `i` of `later`; adds an input if `earlier` lacks it.
  static int32_t operand(ProgramWriter& writer, const Node& earlier, const std::vector<int32_t>& first_inputs,
                         const std::vector<int32_t>& first, const Node& later, size_t i, std::vector<ValueId>& inputs) {
    const Program& program = *earlier.as<Pointwise>()->program;
    const tn_program_input& wanted = later.as<Pointwise>()->program->inputs[i];
    for (size_t j = 0; j < earlier.outputs.size(); ++j)
      if (earlier.outputs[j] == later.inputs[i]) return first[at(program.outputs[j].value)];
    for (size_t j = 0; j < earlier.inputs.size(); ++j) {
      const tn_program_input& have = program.inputs[j];
      if (earlier.inputs[j] == later.inputs[i] && have.extent == wanted.extent && have.kind == wanted.kind)
        return first_inputs[j];
    }
    inputs.push_back(later.inputs[i]);
    return writer.input(wanted.extent, wanted.kind);
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
      Program program = *pointwise->program;
      std::vector<ValueId> outputs;
      program.outputs.clear();
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (!read[at(node.outputs[i])]) continue;
        outputs.push_back(node.outputs[i]);
        program.outputs.push_back(pointwise->program->outputs[i]);
      }
      if (outputs.size() == node.outputs.size() || outputs.empty()) continue;
      const TrimmedProgram trimmed = trim_inputs(program);
      std::vector<ValueId> inputs;
      for (const int32_t kept : trimmed.kept) inputs.push_back(node.inputs[at(kept)]);
      node.inputs = std::move(inputs);
      node.outputs = std::move(outputs);
      pointwise->program = std::make_shared<Program>(trimmed.program);
    }
  }

  Graph& graph_;
  std::vector<bool> kept_;
};

}  // namespace

void fuse(Graph& graph, const std::vector<ValueId>& kept) { Fusion(graph, kept).run(); }

}  // namespace tenon::core

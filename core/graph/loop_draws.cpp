// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "core/graph/loop_range.h"

namespace tenon::core {

namespace {

// The extents of the draws of a pointwise node, by number.
using Draws = std::map<int32_t, uint8_t>;

void find_draws(const Program& program, Draws& draws) {
  for (size_t i = 0; i < program.instructions.size(); ++i)
    if (program.instructions[i].op == TN_OP_UNIFORM) draws.try_emplace(program.instructions[i].a, program.extents[i]);
}

// Returns a program that reads its draws from inputs behind those that it has.
Program reading(Program program, const Draws& draws) {
  std::map<int32_t, int32_t> inputs;
  for (const auto& [number, extent] : draws) {
    inputs[number] = static_cast<int32_t>(program.inputs.size());
    program.inputs.push_back({extent, TN_FLOAT, 0});
  }
  for (tn_instruction& in : program.instructions) {
    if (in.op != TN_OP_UNIFORM) continue;
    in.op = TN_OP_INPUT;
    in.a = inputs.at(in.a);
  }
  return program;
}

// The same for an author's gradient of a program with `count` inputs: the draws come behind these, and so do their
// gradients, which are 0.
Program reading_gradient(const Program& author, const Draws& draws, size_t count) {
  const Program read = reading(author, draws);
  ProgramWriter write;
  std::vector<int32_t> inputs(read.inputs.size());
  const auto take = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) inputs[i] = write.input(read.inputs[i].extent, read.inputs[i].kind);
  };
  take(0, count);
  take(author.inputs.size(), read.inputs.size());
  take(count, author.inputs.size());
  const std::vector<int32_t> values = write.inline_program(read, inputs);
  for (const tn_program_output& output : read.outputs)
    write.output(values[static_cast<size_t>(output.value)], output.dtype);
  for (const auto& [number, extent] : draws) write.output(write.expand(write.constant(0), extent));
  return write.finish();
}

void hoist(Graph& graph, size_t number) {
  const Pointwise pointwise = *graph.nodes[number].as<Pointwise>();
  Draws draws;
  find_draws(*pointwise.program, draws);
  if (pointwise.author_gradient) find_draws(*pointwise.author_gradient, draws);
  if (draws.empty()) return;
  const size_t count = pointwise.program->inputs.size();
  GraphWriter write(graph, graph.nodes[number].layer, graph.nodes[number].backward, graph.compute);
  for (const auto& [number_of_draw, extent] : draws) {
    ProgramWriter program;
    program.output(program.uniform(number_of_draw, extent));
    const ValueId drawn =
        write.pointwise_on(std::make_shared<Program>(program.finish()), {}, pointwise.whole, pointwise.leading)[0];
    graph.nodes[number].inputs.push_back(drawn);
  }
  auto& changed = *graph.nodes[number].as<Pointwise>();
  changed.program = std::make_shared<Program>(reading(*pointwise.program, draws));
  if (pointwise.author_gradient)
    changed.author_gradient = std::make_shared<Program>(reading_gradient(*pointwise.author_gradient, draws, count));
}

}  // namespace

void hoist_draws(Graph& graph, size_t first, const std::vector<bool>& stepwise) {
  const size_t end = graph.nodes.size();
  for (size_t i = 0; i < stepwise.size(); ++i)
    if (stepwise[i] && graph.nodes[first + i].is<Pointwise>()) hoist(graph, first + i);
  const auto begin = graph.nodes.begin();
  std::rotate(begin + static_cast<std::ptrdiff_t>(first), begin + static_cast<std::ptrdiff_t>(end), graph.nodes.end());
  graph.renumber();
}

}  // namespace tenon::core

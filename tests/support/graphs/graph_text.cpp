// SPDX-License-Identifier: Apache-2.0
#include "tests/support/graphs/graph_text.h"

#include <sstream>

namespace tenon_tests {

using namespace tenon::core;

std::string text_of(const Graph& graph) {
  std::ostringstream text;
  const auto list = [&](const std::vector<ValueId>& values) {
    for (const ValueId value : values) {
      text << ' ' << value;
      if (value != kNoValue) text << ':' << to_string(graph.spec(value));
    }
  };
  for (const Node& node : graph.nodes) {
    text << (node.backward ? "backward " : "forward ") << primitive_name(node.operation);
    list(node.inputs);
    text << " ->";
    list(node.outputs);
    if (const auto* segment = node.as<Segment>()) text << " op " << segment->op;
    if (const auto* gemm = node.as<Gemm>()) text << " flags " << gemm->flags;
    if (const Pointwise* pointwise = node.pointwise()) {
      text << "  {" << to_string(pointwise->rows) << " x " << to_string(pointwise->columns) << ";";
      for (const tn_program_input& input : pointwise->program->inputs)
        text << " in " << int{input.extent} << int{input.kind};
      for (const tn_instruction& in : pointwise->program->instructions)
        text << " " << opcode_name(in.op) << "(" << in.a << "," << in.b << "," << in.c << ")";
      for (const tn_program_output& output : pointwise->program->outputs) text << " out " << output.value;
      text << "}";
    }
    text << '\n';
  }
  return text.str();
}

}  // namespace tenon_tests

// SPDX-License-Identifier: Apache-2.0
#include "tests/support/graph_text.h"

#include <sstream>

namespace tenon::test {

std::string text_of(const Graph& graph) {
  std::ostringstream text;
  const auto list = [&](const std::vector<ValueId>& values) {
    for (const ValueId value : values) {
      text << ' ' << value;
      if (value != kNoValue) text << ':' << to_string(graph.spec(value));
    }
  };
  for (const Node& node : graph.nodes) {
    text << (node.backward ? "backward " : "forward ") << primitive_name(node.primitive);
    list(node.inputs);
    text << " ->";
    list(node.outputs);
    if (node.primitive == Primitive::kSegment) text << " op " << node.segment.op;
    if (node.primitive == Primitive::kGemm) text << " flags " << node.flags;
    if (node.program) {
      text << "  {" << to_string(node.rows) << " x " << to_string(node.columns) << ";";
      for (const tn_program_input& input : node.program->inputs) text << " in " << int{input.extent} << int{input.kind};
      for (const tn_instruction& in : node.program->instructions)
        text << " " << in.op << "(" << in.a << "," << in.b << "," << in.c << ")";
      for (const tn_program_output& output : node.program->outputs) text << " out " << output.value;
      text << "}";
    }
    text << '\n';
  }
  return text.str();
}

}  // namespace tenon::test

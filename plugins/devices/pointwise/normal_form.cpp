// Brings pointwise programs into normal form. SPDX-License-Identifier: Apache-2.0
#include "normal_form.h"

#include <algorithm>
#include <array>

namespace tenon::pointwise {

namespace {

bool is_one(const tn_dim& dim) { return dim.symbol == TN_SYMBOL_NONE && dim.offset == 1; }

// Maps the extents of the program to those of the grid: one row or one column makes two of them equal.
std::array<uint8_t, 4> extents_on_grid(const tn_pointwise_site& site) {
  if (is_one(site.rows)) return {TN_SCALAR, TN_FULL, TN_SCALAR, TN_FULL};
  if (is_one(site.columns)) return {TN_SCALAR, TN_SCALAR, TN_FULL, TN_FULL};
  return {TN_SCALAR, TN_PER_COLUMN, TN_PER_ROW, TN_FULL};
}

Node translate(const tn_instruction& in, uint8_t extent, const std::vector<int32_t>& values) {
  Node node;
  node.operation = in.op;
  node.kind = in.kind;
  node.extent = extent;
  node.number = in.number;
  if (in.op == TN_OP_INPUT || in.op == TN_OP_UNIFORM) {
    node.index = in.a;
  } else if (in.op == TN_OP_ROW || in.op == TN_OP_COLUMN) {
    node.operation = extent == TN_SCALAR ? kConstant : kIndex;  // of the only row or column: 0
    node.number = 0;
  }
  const int32_t operands[3] = {in.a, in.b, in.c};
  for (int i = 0; i < tn_op_info(in.op).operands; ++i) node.operands[i] = values[static_cast<size_t>(operands[i])];
  return node;
}

// Whether a node has the value of its first operand.
bool changes_nothing(const Node& node, const Node& first) {
  if (node.operation == TN_OP_STOP) return true;
  if (node.operation == TN_OP_CAST) return node.kind == first.kind;
  return (node.operation == kCopy || node.is_reduction()) && node.extent == first.extent;
}

}  // namespace

NormalForm normalise(const tn_pointwise_site& site) {
  const tn_program& program = *site.program;
  const std::array<uint8_t, 4> extents = extents_on_grid(site);
  NormalForm form;
  form.nodes.reserve(program.instructions_count);
  form.values.reserve(program.instructions_count);
  form.global.reserve(program.instructions_count);
  form.depths.reserve(program.instructions_count);
  for (uint32_t i = 0; i < program.instructions_count; ++i) {
    Node node = translate(program.instructions[i], extents[site.extents[i]], form.values);
    if (node.operation == TN_OP_SELECT && node.operands[1] == node.operands[2])  // the host broadcasts a value this way
      node = {kCopy, node.kind, node.extent, {node.operands[1], -1, -1}, -1, 0};
    const int32_t first = node.operands[0];
    const bool same = first >= 0 && changes_nothing(node, form.nodes[static_cast<size_t>(first)]);
    const bool global = !same && node.is_reduction() && node.extent != TN_PER_ROW;
    int32_t depth = 0;
    for (int k = 0; k < node.operands_count(); ++k)
      depth = std::max(depth, form.depths[static_cast<size_t>(node.operands[k])]);
    form.nodes.push_back(node);
    form.values.push_back(same ? first : static_cast<int32_t>(i));
    form.global.push_back(global);
    form.depths.push_back(global ? depth + 1 : depth);
  }
  return form;
}

}  // namespace tenon::pointwise

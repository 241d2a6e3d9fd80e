// The normal form of pointwise programs, from which devices plan their passes or kernels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device.h>

#include <cstdint>
#include <vector>

namespace tenon::pointwise {

// Operations of a node: the opcodes of tenon/program.h, COLUMN excepted, and kCopy. These have a meaning of their own;
// of TN_OP_UNIFORM, `index` is the draw.
enum Operation : uint16_t {
  kLoad = TN_OP_INPUT,         // program input number `index`
  kConstant = TN_OP_CONSTANT,  // `number`
  kIndex = TN_OP_ROW,          // position along the axis of the node's extent
  kCopy = 99                   // operand 0, broadcast to the node's extent
};

// One value of a program; operands are numbers of earlier nodes.
struct Node {
  uint16_t operation = 0;
  uint8_t kind = TN_FLOAT;
  uint8_t extent = TN_SCALAR;
  int32_t operands[3] = {-1, -1, -1};  // -1: unused
  int32_t index = -1;
  double number = 0;

  // Also 0 for an opcode of a later version, which a device refuses because it has no kernel for it.
  [[nodiscard]] int operands_count() const {
    return operands[2] >= 0 ? 3 : operands[1] >= 0 ? 2 : operands[0] >= 0 ? 1 : 0;
  }
  [[nodiscard]] bool is_reduction() const { return tn_op_info(operation).op_class == TN_CLASS_REDUCTION; }
};

// Extents are those of the grid: if it is known to be one row or one column, PER_ROW and PER_COLUMN values become
// SCALAR or FULL. Instructions that change nothing (STOP, a cast to the same kind, a reduction along an axis of one)
// have the value of their operand.
struct NormalForm {
  std::vector<Node> nodes;      // [instructions]
  std::vector<int32_t> values;  // [instructions] the node that has the value of the instruction
  std::vector<bool> global;     // [nodes] whether it is a reduction to SCALAR or PER_COLUMN, which many rows share
  std::vector<int32_t> depths;  // [nodes] global reductions on the longest way to it, itself included
};
[[nodiscard]] NormalForm normalise(const tn_pointwise_site& site);

}  // namespace tenon::pointwise

// A plain interpreter of pointwise programs in fp64: the definition that devices are compared with. One value after
// the other, every value in full; no fusing, no blocks, no reordering. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/op_value.h>
#include <tenon/philox.h>
#include <tenon/services.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace tenon::check::reference {

inline int64_t elements(uint8_t extent, int64_t rows, int64_t columns) {
  switch (extent) {
    case TN_SCALAR:
      return 1;
    case TN_PER_COLUMN:
      return columns;
    case TN_PER_ROW:
      return rows;
    default:
      return rows * columns;
  }
}

inline std::vector<uint8_t> derive_extents(const tn_program& program) {
  std::vector<uint8_t> extents;
  for (uint32_t i = 0; i < program.instructions_count; ++i) {
    const tn_instruction& in = program.instructions[i];
    uint8_t extent = TN_SCALAR;
    if (in.op == TN_OP_INPUT) extent = program.inputs[in.a].extent;
    if (in.op == TN_OP_ROW) extent = TN_PER_ROW;
    if (in.op == TN_OP_COLUMN) extent = TN_PER_COLUMN;
    const int32_t operands[3] = {in.a, in.b, in.c};
    // PER_COLUMN and PER_ROW are one bit each, FULL is both: the smallest extent that covers two is their union.
    for (int k = 0; k < tn_op_info(in.op).operands; ++k) extent |= extents[static_cast<size_t>(operands[k])];
    const uint8_t op_class = tn_op_info(in.op).op_class;
    if (op_class == TN_CLASS_REDUCTION || op_class == TN_CLASS_RANDOM) extent = in.extent;
    extents.push_back(extent);
  }
  return extents;
}

// The index of the element for row r and column c in a value of `extent`.
inline size_t position(uint8_t extent, int64_t r, int64_t c, int64_t columns) {
  const int64_t at = extent == TN_SCALAR ? 0 : extent == TN_PER_COLUMN ? c : extent == TN_PER_ROW ? r : r * columns + c;
  return static_cast<size_t>(at);
}

// The outputs of a program. Each, and each of `inputs`, has as many elements as its extent.
inline std::vector<std::vector<double>> evaluate(const tn_program& program, int64_t rows, int64_t columns,
                                                 const std::vector<std::vector<double>>& inputs,
                                                 const tn_random& random = {}) {
  const std::vector<uint8_t> extents = derive_extents(program);
  std::vector<std::vector<double>> values;
  for (uint32_t i = 0; i < program.instructions_count; ++i) {
    const tn_instruction& in = program.instructions[i];
    if (tn_op_info(in.op).op_class == TN_CLASS_NONE) throw std::invalid_argument("an unknown opcode");
    const uint8_t extent = extents[i];
    const auto count = static_cast<size_t>(elements(extent, rows, columns));
    std::vector<double> value(count, in.op == TN_OP_CONSTANT ? tn_op_value(TN_OP_CAST, in.kind, in.number, 0, 0) : 0.0);
    if (in.op == TN_OP_INPUT) {
      value = inputs.at(static_cast<size_t>(in.a));
      if (value.size() != count) throw std::invalid_argument("an input of another size than its extent");
    } else if (in.op == TN_OP_ROW || in.op == TN_OP_COLUMN) {
      for (size_t k = 0; k < count; ++k) value[k] = static_cast<double>(k);
    } else if (in.op == TN_OP_UNIFORM) {
      for (size_t k = 0; k < count; ++k)
        value[k] = tn_uniform(random.seed, random.step, static_cast<uint64_t>(in.a), k);
    } else if (tn_op_info(in.op).op_class == TN_CLASS_REDUCTION) {
      const uint8_t from = extents[static_cast<size_t>(in.a)];
      const std::vector<double>& a = values[static_cast<size_t>(in.a)];
      value.assign(count, tn_op_start(in.op));
      const bool over_rows = (from & TN_PER_ROW) != 0, over_columns = (from & TN_PER_COLUMN) != 0;
      for (int64_t r = 0; r < (over_rows ? rows : 1); ++r)
        for (int64_t c = 0; c < (over_columns ? columns : 1); ++c) {
          double& sum = value[position(extent, r, c, columns)];
          sum = tn_op_value(in.op, in.kind, sum, a[position(from, r, c, columns)], 0);
        }
    } else if (tn_op_info(in.op).operands > 0) {
      const int32_t operands[3] = {in.a, in.b, in.c};
      const bool over_rows = (extent & TN_PER_ROW) != 0, over_columns = (extent & TN_PER_COLUMN) != 0;
      for (int64_t r = 0; r < (over_rows ? rows : 1); ++r)
        for (int64_t c = 0; c < (over_columns ? columns : 1); ++c) {
          double read[3] = {0, 0, 0};
          for (int k = 0; k < tn_op_info(in.op).operands; ++k) {
            const auto operand = static_cast<size_t>(operands[k]);
            read[k] = values[operand][position(extents[operand], r, c, columns)];
          }
          value[position(extent, r, c, columns)] = tn_op_value(in.op, in.kind, read[0], read[1], read[2]);
        }
    }
    values.push_back(std::move(value));
  }
  std::vector<std::vector<double>> outputs;
  for (uint32_t k = 0; k < program.outputs_count; ++k)
    outputs.push_back(values[static_cast<size_t>(program.outputs[k].value)]);
  return outputs;
}

}  // namespace tenon::check::reference

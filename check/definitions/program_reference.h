// A plain interpreter of pointwise programs in fp64: the definition that devices are compared with. One value after
// the other, every value in full; no fusing, no blocks, no reordering. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/philox.h>
#include <tenon/program.h>
#include <tenon/services.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
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

inline double apply(uint16_t op, uint8_t kind, double a, double b, double c) {
  const bool nan = std::isnan(a) || std::isnan(b);
  switch (op) {
    case TN_OP_CAST:
      return kind == TN_FLOAT ? a : kind == TN_INT ? std::trunc(a) : a != 0 ? 1 : 0;
    case TN_OP_STOP:
      return a;
    case TN_OP_ADD:
      return a + b;
    case TN_OP_SUB:
      return a - b;
    case TN_OP_MUL:
      return a * b;
    case TN_OP_DIV:
      return a / b;
    case TN_OP_MIN:
      return nan ? std::numeric_limits<double>::quiet_NaN() : std::min(a, b);
    case TN_OP_MAX:
      return nan ? std::numeric_limits<double>::quiet_NaN() : std::max(a, b);
    case TN_OP_NEG:
      return -a;
    case TN_OP_ABS:
      return std::fabs(a);
    case TN_OP_SQRT:
      return std::sqrt(a);
    case TN_OP_EXP:
      return std::exp(a);
    case TN_OP_EXPM1:
      return std::expm1(a);
    case TN_OP_LOG:
      return std::log(a);
    case TN_OP_LOG1P:
      return std::log1p(a);
    case TN_OP_TANH:
      return std::tanh(a);
    case TN_OP_ERF:
      return std::erf(a);
    case TN_OP_SIN:
      return std::sin(a);
    case TN_OP_COS:
      return std::cos(a);
    case TN_OP_POW:
      return std::pow(a, b);
    case TN_OP_FLOOR:
      return std::floor(a);
    case TN_OP_ROUND:
      return std::nearbyint(a);
    case TN_OP_SIGN:
      return a < 0 ? -1 : a > 0 ? 1 : a;
    case TN_OP_FLOOR_DIV:
      return b == 0 ? 0 : std::floor(a / b);
    case TN_OP_MOD:
      return b == 0 ? 0 : a - b * std::floor(a / b);
    case TN_OP_IS_FINITE:
      return std::isfinite(a) ? 1 : 0;
    case TN_OP_EQUAL:
      return a == b ? 1 : 0;
    case TN_OP_LESS:
      return a < b ? 1 : 0;
    case TN_OP_LESS_EQUAL:
      return a <= b ? 1 : 0;
    case TN_OP_AND:
      return a != 0 && b != 0 ? 1 : 0;
    case TN_OP_OR:
      return a != 0 || b != 0 ? 1 : 0;
    case TN_OP_NOT:
      return a != 0 ? 0 : 1;
    case TN_OP_SELECT:
      return a != 0 ? b : c;
    default:
      throw std::invalid_argument("the reference does not know this opcode");
  }
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
    const uint8_t extent = extents[i];
    const auto count = static_cast<size_t>(elements(extent, rows, columns));
    std::vector<double> value(count, in.op == TN_OP_CONSTANT ? in.number : 0.0);
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
      const double infinity = std::numeric_limits<double>::infinity();
      if (in.op == TN_OP_REDUCE_MAX) value.assign(count, -infinity);
      if (in.op == TN_OP_REDUCE_MIN) value.assign(count, infinity);
      const uint16_t join = in.op == TN_OP_REDUCE_SUM ? TN_OP_ADD : in.op == TN_OP_REDUCE_MAX ? TN_OP_MAX : TN_OP_MIN;
      const bool over_rows = (from & TN_PER_ROW) != 0, over_columns = (from & TN_PER_COLUMN) != 0;
      for (int64_t r = 0; r < (over_rows ? rows : 1); ++r)
        for (int64_t c = 0; c < (over_columns ? columns : 1); ++c) {
          double& sum = value[position(extent, r, c, columns)];
          sum = apply(join, TN_FLOAT, sum, a[position(from, r, c, columns)], 0);
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
          value[position(extent, r, c, columns)] = apply(in.op, in.kind, read[0], read[1], read[2]);
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

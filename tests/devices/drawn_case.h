// Random programs, operands, requests and sizes of the primitive "pointwise", in whole numbers, where every result is
// exact. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/devices/pointwise_case.h"
#include "tests/support/drawn_program.h"

namespace tenon_tests {

using namespace tenon::core;

class DrawnCase : private DrawnProgram {
 public:
  explicit DrawnCase(uint64_t seed) : DrawnProgram(engine_), engine_(seed) {}

  PointwiseCase make() {
    PointwiseCase c;
    constexpr int64_t kSizes[] = {0, 1, 1, 2, 3, 5, 10, 17, 64, 100, 255, 256, 257, 300, 513, 600, 1100};
    c.rows = kSizes[pick(17)];
    c.columns = kSizes[pick(17)];
    while (c.rows * c.columns > 60000) c.rows /= 2;
    c.rows_vary = c.rows != 1 || pick(2) == 0;
    if (!c.rows_vary) c.columns_vary = pick(2) == 0;
    c.bounded = pick(2) == 0;
    c.compute = pick(2) == 0 ? TN_F32 : TN_F64;
    constexpr tn_dtype kNumbers[] = {TN_F32, TN_F64, TN_F32, TN_F64, TN_I32, TN_I64,
                                     TN_U8,  TN_I8,  TN_I16, TN_F16, TN_BF16};
    for (size_t i = 0, n = 1 + pick(5); i < n; ++i) {
      const auto extent =
          static_cast<uint8_t>(pick(5) == 0 ? pick(4) : static_cast<size_t>(TN_FULL) - pick(2) * pick(4));
      const auto kind = static_cast<uint8_t>(pick(5) == 0 ? TN_LOGICAL : pick(4) == 0 ? TN_INT : TN_FLOAT);
      values_.push_back(writer_.input(extent, kind));
      c.input_types.push_back(kind == TN_LOGICAL ? (pick(2) == 0 ? TN_BOOL : TN_U8)
                              : pick(2) == 0     ? c.compute
                                                 : kNumbers[pick(11)]);
      std::vector<double> numbers(static_cast<size_t>(tenon::check::reference::elements(extent, c.rows, c.columns)));
      for (double& number : numbers)
        number = static_cast<double>(kind == TN_LOGICAL ? pick(2) : pick(6)) -
                 (kind != TN_LOGICAL && c.input_types.back() != TN_U8 ? 3.0 : 0.0);
      c.inputs.push_back(numbers);
    }
    for (size_t i = 0, n = 2 + pick(30); i < n; ++i) step();
    std::vector<tn_dtype> types;
    for (size_t k = 0, n = 1 + pick(5); k < n; ++k) {
      const int32_t value = values_[values_.size() - 1 - pick(values_.size())];
      constexpr tn_dtype kOutputs[] = {TN_F32, TN_F64, TN_I32, TN_I64};
      const tn_dtype type = writer_.kind(value) == TN_LOGICAL ? TN_BOOL
                            : pick(3) == 0                    ? kOutputs[pick(4)]
                            : writer_.kind(value) == TN_INT   ? (c.compute == TN_F32 ? TN_I32 : TN_I64)
                                                              : TN_COMPUTE;
      writer_.output(value, type);
      types.push_back(type);
    }
    c.program = Program::from(writer_.finish().view());
    choose_requests(c);
    return c;
  }

 private:
  // Clamps numbers to [-7, 7], so that their sums are exact in f32.
  int32_t small(int32_t value) { return clamped(value, 7); }

  void step() {
    const uint8_t number = pick(3) == 0 ? TN_INT : TN_FLOAT;
    values_.push_back(result(pick(20), number));
  }

  int32_t result(size_t choice, uint8_t number) {
    switch (choice) {
      case 0:
      case 1:
        return small(writer_.apply(pick(2) == 0 ? TN_OP_ADD : TN_OP_SUB, any(number), any(number)));
      case 2:
        return small(writer_.apply(pick(2) == 0 ? TN_OP_ADD : TN_OP_SUB,
                                   writer_.apply(TN_OP_MUL, any(TN_FLOAT), any(TN_FLOAT)), any(TN_FLOAT)));
      case 3:
        return small(writer_.apply(TN_OP_MUL, any(number), any(number)));
      case 4:
        return writer_.apply(pick(2) == 0 ? TN_OP_MIN : TN_OP_MAX, any(number), any(number));
      case 5:
        return writer_.apply(pick(2) == 0 ? TN_OP_NEG : TN_OP_ABS, any(number));
      case 6:
        return comparison(number);
      case 7:
        return logic();
      case 8:
        return selection();
      case 9:
        return writer_.cast(values_[pick(values_.size())], static_cast<uint8_t>(pick(3)));
      case 10:
        return expansion();
      case 11:
        return draw();
      case 12:
        return whole_of_half();
      case 13:
        return writer_.apply(pick(2) == 0 ? TN_OP_FLOOR_DIV : TN_OP_MOD, any(TN_INT), any(TN_INT));
      case 14:
        return sign(number);
      case 15:
        return pick(2) == 0 ? power()
                            : writer_.apply(TN_OP_IS_FINITE, writer_.apply(TN_OP_DIV, any(TN_FLOAT), any(TN_FLOAT)));
      default:
        return reduction(number);
    }
  }

  int32_t comparison(uint8_t number) {
    constexpr uint16_t kComparisons[] = {TN_OP_EQUAL, TN_OP_LESS, TN_OP_LESS_EQUAL};
    return writer_.apply(kComparisons[pick(3)], any(number), any(number));
  }

  int32_t logic() {
    const int32_t a = any(TN_LOGICAL);
    if (pick(3) == 0) return writer_.apply(TN_OP_NOT, a);
    return writer_.apply(pick(2) == 0 ? TN_OP_AND : TN_OP_OR, a, any(TN_LOGICAL));
  }

  int32_t selection() {
    const auto kind = static_cast<uint8_t>(pick(3));
    return writer_.apply(TN_OP_SELECT, any(TN_LOGICAL), any(kind), any(kind));
  }

  int32_t expansion() {
    const int32_t row = pick(2) == 0 ? writer_.expand(writer_.constant(1, TN_INT), TN_PER_ROW) : any(TN_INT);
    return writer_.expand(small(row), pick(2) == 0 ? uint8_t{TN_PER_COLUMN} : uint8_t{TN_FULL});
  }

  // A whole number from 0 to 7, the same for both compute types.
  int32_t draw() {
    const auto extent = static_cast<uint8_t>(pick(4));
    const int32_t uniform = writer_.uniform(static_cast<int32_t>(pick(3)), extent);
    return writer_.cast(writer_.cast(writer_.apply(TN_OP_MUL, uniform, writer_.constant(8)), TN_INT), TN_FLOAT);
  }

  int32_t whole_of_half() {
    const int32_t half = writer_.apply(TN_OP_MUL, any(TN_FLOAT), writer_.constant(0.5));
    return writer_.apply(pick(2) == 0 ? TN_OP_FLOOR : TN_OP_ROUND, half);
  }

  // Of a number, its sine or its cosine: no whole number from -7 to 7 but 0 has a sine or cosine near 0.
  int32_t sign(uint8_t number) {
    const int32_t value =
        number == TN_INT ? any(TN_INT) : writer_.apply(pick(2) == 0 ? TN_OP_SIN : TN_OP_COS, any(TN_FLOAT));
    return writer_.apply(TN_OP_SIGN, value);
  }

  // To a power from 0 to 3, which every device gives exactly.
  int32_t power() {
    const int32_t exponent = writer_.apply(TN_OP_MIN, writer_.apply(TN_OP_ABS, any(TN_FLOAT)), writer_.constant(3));
    return small(writer_.apply(TN_OP_POW, any(TN_FLOAT), exponent));
  }

  int32_t reduction(uint8_t kind) {
    const int32_t a = small(any(kind));
    const std::vector<uint8_t> smaller = smaller_extents(a);
    if (smaller.empty()) return a;
    constexpr uint16_t kReductions[] = {TN_OP_REDUCE_SUM, TN_OP_REDUCE_MAX, TN_OP_REDUCE_MIN};
    const uint16_t op = kind == TN_INT ? kReductions[1 + pick(2)] : kReductions[pick(3)];
    // MIN and MAX over no elements are infinite; small() makes them whole numbers.
    return small(writer_.reduce(op, a, smaller[pick(smaller.size())]));
  }

  void choose_requests(PointwiseCase& c) {
    for (size_t k = 0; k < c.program.outputs.size(); ++k) {
      c.requests.push_back(static_cast<uint8_t>(pick(5) == 0   ? TN_REQUEST_NONE
                                                : pick(3) == 0 ? TN_REQUEST_ADD
                                                               : TN_REQUEST_WRITE));
      if (output_type(c, k) == TN_BOOL && c.requests[k] == TN_REQUEST_ADD) c.requests[k] = TN_REQUEST_WRITE;
      c.aliases.push_back(-1);
      for (size_t i = 0; i < c.inputs.size(); ++i) {
        if (pick(2) == 0 || c.program.inputs[i].extent != c.program.output_extent(k)) continue;
        if (std::find(c.aliases.begin(), c.aliases.end(), static_cast<int32_t>(i)) != c.aliases.end()) continue;
        const bool same_type = output_type(c, k) == input_type(c, i);
        const bool same_size = tn_dtype_bytes(output_type(c, k)) == tn_dtype_bytes(input_type(c, i));
        if (!same_type && (!same_size || c.requests[k] != TN_REQUEST_WRITE)) continue;
        c.aliases[k] = static_cast<int32_t>(i);
        break;
      }
    }
  }

  std::mt19937_64 engine_;
};

}  // namespace tenon_tests

// Random pointwise programs for graphs. Their values are bounded, so that long chains stay finite.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <random>

#include "tests/support/drawn_program.h"

namespace tenon_tests {

using namespace tenon::core;

class GraphProgram : private DrawnProgram {
 public:
  // smooth: only differentiable functions of the float inputs, in fp64. draws: the number of draws so far.
  GraphProgram(std::mt19937_64& random, bool smooth, int32_t& draws)
      : DrawnProgram(random), smooth_(smooth), draws_(draws) {}

  void input(uint8_t extent, uint8_t kind) { values_.push_back(writer_.input(extent, kind)); }

  // Adds instructions and outputs after the inputs, and returns the program.
  Program finish() {
    for (size_t i = 0, n = 1 + pick(6); i < n; ++i) values_.push_back(one_in(8) ? other() : number());
    output(values_.back());
    for (size_t i = 0, more = pick(5) / 2; i < more; ++i) output(values_[pick(values_.size())]);
    return Program::from(writer_.finish().view());
  }

 private:
  int32_t any(uint8_t kind) { return DrawnProgram::any(kind, 12); }
  int32_t constant(double number, uint8_t kind = TN_FLOAT) { return writer_.constant(number, kind); }
  int32_t bounded(int32_t a) { return smooth_ || one_in(2) ? writer_.apply(TN_OP_TANH, a) : clamped(a, 2); }
  int32_t square(int32_t a) { return writer_.apply(TN_OP_MUL, a, a); }
  int32_t one_and_square(int32_t a) { return writer_.apply(TN_OP_ADD, constant(1), square(a)); }

  int32_t number() {
    const int32_t a = any(TN_FLOAT);
    switch (pick(smooth_ ? 14 : 20)) {
      case 0:
      case 1:
        return writer_.apply(one_in(2) ? TN_OP_ADD : TN_OP_SUB, a, any(TN_FLOAT));
      case 2:
      case 3:
        return bounded(writer_.apply(TN_OP_MUL, a, any(TN_FLOAT)));
      case 4:
        return writer_.apply(TN_OP_DIV, a, one_and_square(any(TN_FLOAT)));
      case 5: {
        constexpr uint16_t kOps[] = {TN_OP_TANH, TN_OP_ERF, TN_OP_SIN, TN_OP_COS};
        return writer_.apply(kOps[pick(4)], a);
      }
      case 6:
        return writer_.apply(one_in(2) ? TN_OP_SQRT : TN_OP_LOG, one_and_square(a));
      case 7:
        return writer_.apply(TN_OP_LOG1P, square(a));
      case 8:
        return writer_.apply(one_in(2) ? TN_OP_EXP : TN_OP_EXPM1, writer_.apply(TN_OP_NEG, square(a)));
      case 9:
        return writer_.apply(TN_OP_ADD, a, writer_.uniform(draws_++, static_cast<uint8_t>(pick(4))));
      case 10:
        return writer_.expand(a, static_cast<uint8_t>(pick(4)));
      case 11:
      case 12:
        return bounded(reduced(a, TN_OP_REDUCE_SUM));
      case 13:
        return writer_.apply(TN_OP_POW, one_and_square(a), writer_.apply(TN_OP_TANH, any(TN_FLOAT)));
      case 14:
        return writer_.apply(one_in(2) ? TN_OP_MIN : TN_OP_MAX, a, any(TN_FLOAT));
      case 15:
        return writer_.apply(one_in(2) ? TN_OP_ABS : TN_OP_STOP, a);
      case 16: {
        constexpr uint16_t kOps[] = {TN_OP_FLOOR, TN_OP_ROUND, TN_OP_SIGN};
        return writer_.apply(kOps[pick(3)], a);
      }
      case 17:
        return writer_.apply(TN_OP_SELECT, any(TN_LOGICAL), a, any(TN_FLOAT));
      default:
        return clamped(reduced(a, one_in(2) ? TN_OP_REDUCE_MAX : TN_OP_REDUCE_MIN), 9);  // infinite if empty
    }
  }

  // Adds an integer or a condition, which derivatives do not pass.
  int32_t other() {
    switch (pick(5)) {
      case 0: {
        constexpr uint16_t kOps[] = {TN_OP_ADD, TN_OP_SUB, TN_OP_MUL, TN_OP_MIN, TN_OP_MAX, TN_OP_FLOOR_DIV, TN_OP_MOD};
        return clamped(writer_.apply(kOps[pick(7)], integer(), integer()), 50);
      }
      case 1:
        return writer_.apply(one_in(2) ? TN_OP_NEG : one_in(2) ? TN_OP_ABS : TN_OP_SIGN, integer());
      case 2:
        return writer_.expand(integer(), static_cast<uint8_t>(pick(4)));
      case 3: {
        constexpr uint16_t kOps[] = {TN_OP_EQUAL, TN_OP_LESS, TN_OP_LESS_EQUAL};
        const bool integers = smooth_ || one_in(2);
        if (!integers && one_in(4)) return writer_.apply(TN_OP_IS_FINITE, any(TN_FLOAT));
        return writer_.apply(kOps[pick(3)], integers ? integer() : any(TN_FLOAT), integers ? integer() : any(TN_FLOAT));
      }
      default: {
        const int32_t a = condition();
        return one_in(3) ? writer_.apply(TN_OP_NOT, a)
                         : writer_.apply(one_in(2) ? TN_OP_AND : TN_OP_OR, a, condition());
      }
    }
  }
  // In smooth programs integers and conditions do not depend on floats.
  int32_t integer() { return smooth_ ? existing(TN_INT, 2) : clamped(any(TN_INT), 50); }
  int32_t condition() { return smooth_ ? existing(TN_LOGICAL, 1) : any(TN_LOGICAL); }
  int32_t existing(uint8_t kind, double otherwise) {
    for (size_t i = values_.size(); i-- > 0;)
      if (writer_.kind(values_[i]) == kind) return values_[i];
    return constant(otherwise, kind);
  }

  int32_t reduced(int32_t a, uint16_t op) {
    const std::vector<uint8_t> smaller = smaller_extents(a);
    return smaller.empty() ? a : writer_.reduce(op, a, smaller[pick(smaller.size())]);
  }

  void output(int32_t value) {
    const uint8_t kind = writer_.kind(value);
    const tn_dtype number = !smooth_ && one_in(6) ? TN_F32 : TN_COMPUTE;
    constexpr tn_dtype kIntegers[] = {TN_I32, TN_I64, TN_COMPUTE};
    writer_.output(value, kind == TN_LOGICAL ? TN_BOOL : kind == TN_INT ? kIntegers[pick(3)] : number);
  }

  const bool smooth_;
  int32_t& draws_;
};

}  // namespace tenon_tests

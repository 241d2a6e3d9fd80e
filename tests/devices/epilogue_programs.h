// Programs that run over the rows of a product, which is input 0. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/program.h"

namespace tenon_tests {

using namespace tenon::core;

// relu(product + bias) and the sums of its columns, as in forward and backward of a layer.
inline Program bias_relu() {
  ProgramWriter w;
  const int32_t c = w.input(TN_FULL), bias = w.input(TN_PER_COLUMN);
  const int32_t y = w.apply(TN_OP_MAX, w.apply(TN_OP_ADD, c, bias), w.constant(0));
  w.output(y);
  w.output(w.reduce(TN_OP_REDUCE_SUM, y, TN_PER_COLUMN));
  return Program::from(w.finish().view());
}

// The softmax of rows scaled by another FULL input, a sum of each row, and the sum of all elements.
inline Program softmax() {
  ProgramWriter w;
  const int32_t c = w.input(TN_FULL), scale = w.input(TN_FULL);
  const int32_t x = w.apply(TN_OP_MUL, c, scale);
  const int32_t e = w.apply(TN_OP_EXP, w.apply(TN_OP_SUB, x, w.reduce(TN_OP_REDUCE_MAX, x, TN_PER_ROW)));
  const int32_t sum = w.reduce(TN_OP_REDUCE_SUM, e, TN_PER_ROW);
  w.output(w.apply(TN_OP_DIV, e, sum));
  w.output(sum);
  w.output(w.reduce(TN_OP_REDUCE_SUM, x, TN_SCALAR));
  return Program::from(w.finish().view());
}

inline Program flat() {
  ProgramWriter w;
  const int32_t c = w.input(TN_FULL);
  w.output(w.apply(TN_OP_MUL, c, c));
  return Program::from(w.finish().view());
}

}  // namespace tenon_tests

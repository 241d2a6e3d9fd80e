// One primitive as a layer and a plain statement of it in fp64; the lists of them. For device_statements.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <tenon/plugin.hpp>
#include <vector>

#include "check/definitions/statements.h"

namespace tenon::check {

constexpr int64_t kWidth = 4, kHeight = 3;

struct Statement {
  std::string name;
  std::vector<InputSpec> inputs;
  std::function<tn_ref(tn::Builder&, const tn_builder&)> lower;
  std::function<Numbers(const StatementArguments&)> value;
  std::function<tn::Spec(const tn::Planner&)> plan = nullptr;  // null: as input 0
  bool couples_samples = false;
  const char* table = "";  // that offers the primitive
  const char* also = "";   // another table that it takes, if not empty
  bool draws = false;      // a device may lack random numbers
};

inline InputSpec floats(std::vector<int64_t> shape = {kWidth}) {
  InputSpec input;
  input.shape = std::move(shape);
  input.low = 0.25, input.high = 1.75;
  return input;
}
// Ids of the rows of a table; in sequences, if `sequence` names them.
inline InputSpec ids(const std::string& sequence = "") {
  InputSpec input;
  input.below = kHeight;
  input.sequence = sequence;
  return input;
}
inline InputSpec sequences(std::vector<int64_t> shape = {kWidth}) {
  InputSpec input = floats(std::move(shape));
  input.sequence = "rows";
  return input;
}

// Rows of `width` numbers, one row for each sample, or for each row of the sequences.
inline Numbers mapped(const StatementArguments& arguments, int64_t width,
                      const std::function<double(int64_t, int64_t)>& at) {
  const int64_t rows = arguments.offsets.empty() ? arguments.samples : arguments.offsets.back();
  Numbers result;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < width; ++c) result.push_back(at(r, c));
  return result;
}
inline double in(const StatementArguments& arguments, size_t input, int64_t row, int64_t column,
                 int64_t width = kWidth) {
  return arguments.inputs[input][static_cast<size_t>(row * width + column)];
}
inline double sum_over(int64_t count, const std::function<double(int64_t)>& term) {
  double result = 0;
  for (int64_t i = 0; i < count; ++i) result += term(i);
  return result;
}

// Programs over [samples, columns]; products with a program behind them.
void add_pointwise(std::vector<Statement>& to);
void add_epilogues(std::vector<Statement>& to);
// Over images.
void add_conv(std::vector<Statement>& to);
void add_conv_epilogue(std::vector<Statement>& to);
void add_pool(std::vector<Statement>& to);
void add_resize(std::vector<Statement>& to);

// The element of a constant table.
inline double table(int64_t row, int64_t column) {
  return 0.25 * static_cast<double>(row) - 0.5 * static_cast<double>(column) + 1;
}

inline tn::Tensor constant(tn::Builder& body, int64_t rows, int64_t columns) {
  std::vector<double> values;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) values.push_back(table(r, c));
  return body.constant(tn::Spec({rows, columns}), values);
}

}  // namespace tenon::check

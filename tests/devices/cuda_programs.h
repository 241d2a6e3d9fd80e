// Pointwise programs that the tests of the device "cuda" compile and run. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <random>
#include <string>

#include "tests/devices/pointwise_case.h"

namespace tenon_tests {

using namespace tenon::core;

struct CudaProgram {
  std::string name;
  PointwiseCase run;
  double tolerance = 4e-6;  // relative to the number, or to 1 if that is larger
};

class CudaPrograms {
 public:
  static std::vector<CudaProgram> all() {
    CudaPrograms made;
    made.operations();
    made.conversions();
    made.rows();
    made.columns();
    made.totals();
    made.training();
    made.extremes();
    made.shapes();
    return std::move(made.list_);
  }

 private:
  using W = ProgramWriter;

  // Returns random numbers that an f32 can hold, one for each element of the extent.
  std::vector<double> numbers(uint8_t extent, double low, double high) {
    std::uniform_real_distribution<float> any(static_cast<float>(low), static_cast<float>(high));
    std::vector<double> list(static_cast<size_t>(tenon::check::reference::elements(extent, case_.rows, case_.columns)));
    for (double& each : list) each = static_cast<double>(any(random_));
    return list;
  }
  std::vector<double> whole(uint8_t extent, int low, int high) {
    std::vector<double> list = numbers(extent, low, high + 1);
    for (double& each : list) each = std::min(std::floor(each), static_cast<double>(high));
    return list;
  }
  void start(int64_t rows, int64_t columns, tn_dtype compute = TN_F32) {
    writer_ = W();
    case_ = {};
    case_.rows = rows;
    case_.columns = columns;
    case_.compute = compute;
  }
  int32_t input(uint8_t extent, double low = -2, double high = 2) {
    case_.inputs.push_back(numbers(extent, low, high));
    case_.input_types.push_back(case_.compute);
    return writer_.input(extent);
  }
  int32_t input_of(uint8_t extent, uint8_t kind, tn_dtype type, int low, int high) {
    case_.inputs.push_back(whole(extent, low, high));
    case_.input_types.push_back(type);
    return writer_.input(extent, kind);
  }
  void finish(const std::string& name, double tolerance = 4e-6) {
    case_.program = writer_.finish();
    list_.push_back({name, case_, case_.compute == TN_F64 ? 1e-13 : tolerance});
  }
  int32_t apply(uint16_t op, int32_t a, int32_t b = -1, int32_t c = -1) { return writer_.apply(op, a, b, c); }
  int32_t sum(int32_t a, uint8_t extent) { return writer_.reduce(TN_OP_REDUCE_SUM, a, extent); }
  int32_t number(double n) { return writer_.constant(n); }

  void operations() {
    for (const tn_dtype compute : {TN_F32, TN_F64}) {
      const std::string suffix = compute == TN_F32 ? "" : " in f64";
      start(7, 300, compute);
      int32_t a = input(TN_FULL), b = input(TN_PER_COLUMN), c = input(TN_PER_ROW), d = input(TN_SCALAR, 1, 2);
      for (const uint16_t op : {TN_OP_ADD, TN_OP_SUB, TN_OP_MUL, TN_OP_MIN, TN_OP_MAX}) writer_.output(apply(op, a, b));
      writer_.output(apply(TN_OP_DIV, apply(TN_OP_ADD, b, c), d));
      writer_.output(apply(TN_OP_NEG, apply(TN_OP_ABS, a)));
      writer_.output(apply(TN_OP_STOP, a));
      for (const uint16_t op : {TN_OP_FLOOR, TN_OP_ROUND, TN_OP_SIGN}) writer_.output(apply(op, a));
      finish("arithmetic" + suffix);

      start(1, 1500, compute);
      a = input(TN_FULL, -0.9, 3);
      for (const uint16_t op : {TN_OP_EXP, TN_OP_EXPM1, TN_OP_LOG1P, TN_OP_TANH, TN_OP_ERF, TN_OP_SIN, TN_OP_COS})
        writer_.output(apply(op, a));
      const int32_t size = apply(TN_OP_ABS, a);
      for (const uint16_t op : {TN_OP_SQRT, TN_OP_LOG}) writer_.output(apply(op, size));
      writer_.output(apply(TN_OP_POW, size, a));
      writer_.output(apply(TN_OP_POW, a, number(3)));
      finish("functions" + suffix);

      start(7, 77, compute);
      a = input(TN_FULL);
      for (const uint8_t extent : {TN_FULL, TN_PER_ROW, TN_PER_COLUMN, TN_SCALAR})
        writer_.output(apply(TN_OP_ADD, writer_.uniform(extent, extent), apply(TN_OP_MUL, a, number(0))));
      finish("draws" + suffix);

      start(5, 33, compute);
      a = input(TN_FULL), b = input(TN_FULL);
      const int32_t less = apply(TN_OP_LESS, a, b), level = apply(TN_OP_LESS_EQUAL, b, number(0.5));
      const int32_t equal = apply(TN_OP_EQUAL, writer_.cast(a, TN_INT), writer_.cast(b, TN_INT));
      writer_.output(apply(TN_OP_SELECT, apply(TN_OP_AND, less, level), a, apply(TN_OP_MUL, b, number(2))));
      writer_.output(apply(TN_OP_OR, equal, apply(TN_OP_NOT, less)), TN_BOOL);
      writer_.output(writer_.cast(level, TN_FLOAT));
      writer_.output(apply(TN_OP_SELECT, less, level, equal), TN_U8);
      const int32_t quotient = apply(TN_OP_DIV, apply(TN_OP_FLOOR, a), apply(TN_OP_FLOOR, b));  // also 1 / 0 and 0 / 0
      writer_.output(apply(TN_OP_IS_FINITE, quotient), TN_BOOL);
      finish("logic" + suffix);

      start(9, 70, compute);
      const int32_t i = input_of(TN_FULL, TN_INT, TN_I64, -9, 9), j = input_of(TN_PER_ROW, TN_INT, TN_I16, -9, 9);
      const int32_t place = apply(TN_OP_ADD, writer_.apply(TN_OP_MUL, row(), writer_.constant(70, TN_INT)), column());
      for (const uint16_t op : {TN_OP_ADD, TN_OP_SUB, TN_OP_MUL, TN_OP_MIN, TN_OP_MAX, TN_OP_FLOOR_DIV, TN_OP_MOD})
        writer_.output(apply(op, i, j), TN_I32);
      writer_.output(apply(TN_OP_SIGN, i), TN_I32);
      writer_.output(apply(TN_OP_NEG, apply(TN_OP_ABS, apply(TN_OP_SUB, place, i))), TN_I64);
      writer_.output(writer_.cast(place, TN_FLOAT));
      writer_.output(writer_.reduce(TN_OP_REDUCE_MAX, i, TN_PER_ROW), TN_I32);
      writer_.output(writer_.reduce(TN_OP_REDUCE_MIN, i, TN_PER_COLUMN), TN_I32);
      writer_.output(writer_.reduce(TN_OP_REDUCE_MIN, j, TN_SCALAR), TN_I32);
      writer_.output(apply(TN_OP_LESS, i, j), TN_BOOL);
      finish("ints" + suffix);
    }
  }

  // ProgramWriter has no function for the two indices; a program of one instruction is copied in.
  int32_t index(uint16_t op, uint8_t extent) {
    Program one;
    one.instructions = {{op, TN_INT, extent, -1, -1, -1, 0}};
    one.extents = {extent};
    return writer_.inline_program(one, {})[0];
  }
  int32_t row() { return index(TN_OP_ROW, TN_PER_ROW); }
  int32_t column() { return index(TN_OP_COLUMN, TN_PER_COLUMN); }

  void conversions() {
    constexpr tn_dtype kTypes[] = {TN_I8,  TN_I16, TN_I32, TN_I64,  TN_U8,  TN_U16,
                                   TN_U32, TN_F16, TN_F32, TN_BF16, TN_F64, TN_BOOL};
    for (const uint8_t kind : {uint8_t{TN_FLOAT}, uint8_t{TN_INT}, uint8_t{TN_LOGICAL}}) {
      start(3, 50);
      std::vector<int32_t> values;
      for (const tn_dtype type : kTypes) values.push_back(input_of(TN_FULL, kind, type, 0, type == TN_BOOL ? 1 : 100));
      if (kind == TN_LOGICAL)
        for (std::vector<double>& list : case_.inputs)
          for (double& each : list) each = each > 0 ? 1 : 0;
      for (size_t k = 0; k < values.size(); ++k)
        writer_.output(values[k], kTypes[(k + 5) % 12] == TN_BOOL ? TN_I16 : kTypes[(k + 5) % 12]);
      case_.requests.assign(values.size(), TN_REQUEST_WRITE);
      if (kind != TN_LOGICAL)
        for (size_t k = 0; k < values.size(); k += 2) case_.requests[k] = TN_REQUEST_ADD;
      finish("element types as kind " + std::to_string(kind));
    }
  }

  int32_t softmax(int32_t x) {
    const int32_t e = apply(TN_OP_EXP, apply(TN_OP_SUB, x, writer_.reduce(TN_OP_REDUCE_MAX, x, TN_PER_ROW)));
    return apply(TN_OP_DIV, e, sum(e, TN_PER_ROW));
  }
  // Returns the mean and the reciprocal of the deviation of every row.
  std::pair<int32_t, int32_t> moments(int32_t x) {
    const int32_t share = number(1.0 / static_cast<double>(case_.columns));
    const int32_t mean = apply(TN_OP_MUL, sum(x, TN_PER_ROW), share);
    const int32_t off = apply(TN_OP_SUB, x, mean);
    const int32_t variance = apply(TN_OP_MUL, sum(apply(TN_OP_MUL, off, off), TN_PER_ROW), share);
    return {mean, apply(TN_OP_DIV, number(1), apply(TN_OP_SQRT, apply(TN_OP_ADD, variance, number(1e-5))))};
  }
  int32_t layer_norm() {
    const int32_t x = input(TN_FULL), gain = input(TN_PER_COLUMN), bias = input(TN_PER_COLUMN);
    const auto [mean, inverse] = moments(x);
    const int32_t unit = apply(TN_OP_MUL, apply(TN_OP_SUB, x, mean), inverse);
    return apply(TN_OP_ADD, apply(TN_OP_MUL, unit, gain), bias);
  }
  int32_t cross_entropy() {
    const int32_t x = input(TN_FULL), label = input_of(TN_PER_ROW, TN_INT, TN_I64, 0, 9);
    const int32_t off = apply(TN_OP_SUB, x, writer_.reduce(TN_OP_REDUCE_MAX, x, TN_PER_ROW));
    const int32_t total = apply(TN_OP_LOG, sum(apply(TN_OP_EXP, off), TN_PER_ROW));
    const int32_t chosen = apply(TN_OP_SELECT, apply(TN_OP_EQUAL, label, column()), off, number(0));
    return apply(TN_OP_SUB, total, sum(chosen, TN_PER_ROW));
  }
  // Adds the gradient program for all float inputs; outputs and their gradients become inputs.
  void gradient(const std::string& name, double tolerance) {
    const Program forward = writer_.finish();
    std::vector<int32_t> wanted;
    for (size_t i = 0; i < forward.inputs.size(); ++i)
      if (forward.inputs[i].kind == TN_FLOAT) wanted.push_back(static_cast<int32_t>(i));
    for (int part = 0; part < 2; ++part)  // the outputs, which are not read, then their gradients
      for (size_t k = 0; k < forward.outputs.size(); ++k) {
        case_.inputs.push_back(numbers(forward.output_extent(k), -1, 1));
        case_.input_types.push_back(case_.compute);
      }
    case_.program = derive_gradient(forward, std::vector<bool>(forward.outputs.size(), true), wanted);
    list_.push_back({name, case_, tolerance});
  }

  void rows() {
    for (const int64_t columns : {int64_t{10}, int64_t{300}, int64_t{1500}}) {  // part of a warp, a warp, a block
      const std::string suffix = " of " + std::to_string(columns);
      start(19, columns);
      writer_.output(softmax(input(TN_FULL)));
      case_.aliases = {0};
      finish("softmax" + suffix);
      start(19, columns);
      writer_.output(softmax(input(TN_FULL)));
      gradient("softmax's gradient" + suffix, 1e-5);
      start(19, columns);
      writer_.output(layer_norm());
      finish("layer norm" + suffix, 1e-5);
      start(150, columns);
      writer_.output(layer_norm());
      gradient("layer norm's gradient" + suffix, 1e-4);
    }
    start(33, 10);
    writer_.output(cross_entropy());
    finish("cross entropy");
    start(33, 10);
    writer_.output(cross_entropy());
    gradient("cross entropy's gradient", 1e-5);
    // In place: a FULL output, and a PER_ROW output that uses a reduction of FULL values.
    start(40, 1100);
    const int32_t x = input(TN_FULL), scale = input(TN_PER_ROW);
    const int32_t most = writer_.reduce(TN_OP_REDUCE_MAX, apply(TN_OP_MUL, x, scale), TN_PER_ROW);
    writer_.output(apply(TN_OP_SUB, apply(TN_OP_MUL, x, scale), most));
    writer_.output(apply(TN_OP_ADD, scale, most));
    case_.aliases = {0, 1};
    finish("rows in place");
  }

  void columns() {
    for (const int64_t rows : {int64_t{1}, int64_t{100}, int64_t{3000}}) {
      start(rows, 70);
      const int32_t x = input(TN_FULL);
      writer_.output(sum(x, TN_PER_COLUMN));
      writer_.output(writer_.reduce(TN_OP_REDUCE_MAX, x, TN_PER_COLUMN));
      case_.requests = {TN_REQUEST_ADD, TN_REQUEST_WRITE};
      finish("columns of " + std::to_string(rows) + " rows", 2e-5);
    }
    // Batch normalisation with moving statistics: reductions of reductions, all outputs in place.
    start(500, 40);
    const int32_t x = input(TN_FULL), gain = input(TN_PER_COLUMN), moving = input(TN_PER_COLUMN);
    const int32_t rate = input(TN_SCALAR, 0, 1), share = number(1.0 / 500);
    const int32_t mean = apply(TN_OP_MUL, sum(x, TN_PER_COLUMN), share);
    const int32_t off = apply(TN_OP_SUB, x, mean);
    const int32_t variance = apply(TN_OP_MUL, sum(apply(TN_OP_MUL, off, off), TN_PER_COLUMN), share);
    writer_.output(apply(TN_OP_MUL, apply(TN_OP_DIV, off, apply(TN_OP_SQRT, variance)), gain));
    writer_.output(apply(TN_OP_ADD, moving, apply(TN_OP_MUL, rate, apply(TN_OP_SUB, mean, moving))));
    writer_.output(apply(TN_OP_MUL, rate, sum(moving, TN_SCALAR)));
    case_.aliases = {0, 2, 3};
    finish("batch norm", 1e-5);
    // A reduction to columns of values that depend on reductions of rows.
    start(200, 30);
    const int32_t p = softmax(input(TN_FULL));
    writer_.output(sum(p, TN_PER_COLUMN));
    writer_.output(p);
    case_.aliases = {-1, 0};
    finish("columns of softmax", 2e-5);
  }

  void totals() {
    start(60, 1200);
    const int32_t x = input(TN_FULL), r = input(TN_PER_ROW), c = input(TN_PER_COLUMN);
    writer_.output(sum(apply(TN_OP_MUL, x, x), TN_SCALAR));
    writer_.output(sum(apply(TN_OP_EXP, r), TN_SCALAR));
    writer_.output(writer_.reduce(TN_OP_REDUCE_MIN, c, TN_SCALAR));
    const int32_t most = writer_.reduce(TN_OP_REDUCE_MAX, x, TN_PER_ROW);
    writer_.output(apply(TN_OP_MUL, sum(apply(TN_OP_MUL, most, r), TN_SCALAR), number(0.25)));
    writer_.output(writer_.reduce(TN_OP_REDUCE_MAX, sum(x, TN_PER_COLUMN), TN_SCALAR));
    finish("totals", 4e-5);
    // Clipping by the norm: two kernels compute the norm, one uses it. One round of parts does not cover all elements.
    start(1, 600000);
    case_.rows_vary = false;
    const int32_t g = input(TN_FULL), limit = input(TN_SCALAR, 1, 2);
    const int32_t norm = apply(TN_OP_SQRT, sum(apply(TN_OP_MUL, g, g), TN_SCALAR));
    writer_.output(apply(TN_OP_MUL, g, apply(TN_OP_MIN, number(1), apply(TN_OP_DIV, limit, norm))));
    writer_.output(norm);
    case_.aliases = {0, -1};
    finish("norm clipping", 1e-5);
  }

  void training() {
    for (const tn_dtype gradient_type : {TN_F32, TN_BF16}) {
      start(1, 5000);
      case_.rows_vary = false;
      const int32_t p = input(TN_FULL);
      const int32_t g = gradient_type == TN_F32 ? input(TN_FULL) : input_of(TN_FULL, TN_FLOAT, TN_BF16, -9, 9);
      const int32_t m = input(TN_FULL), v = input(TN_FULL, 0, 1), rate = input(TN_SCALAR, 0, 0.1);
      const int32_t step = input(TN_SCALAR, 1, 5);
      const auto mix = [&](int32_t old, int32_t fresh, double keep) {
        return apply(TN_OP_ADD, apply(TN_OP_MUL, old, number(keep)), apply(TN_OP_MUL, fresh, number(1 - keep)));
      };
      const auto corrected = [&](int32_t moment, double keep) {
        const int32_t left = apply(TN_OP_NEG, apply(TN_OP_EXPM1, apply(TN_OP_MUL, step, number(std::log(keep)))));
        return apply(TN_OP_DIV, moment, left);
      };
      const int32_t new_m = mix(m, g, 0.9), new_v = mix(v, apply(TN_OP_MUL, g, g), 0.999);
      const int32_t root = apply(TN_OP_ADD, apply(TN_OP_SQRT, corrected(new_v, 0.999)), number(1e-8));
      const int32_t change = apply(TN_OP_MUL, rate, apply(TN_OP_DIV, corrected(new_m, 0.9), root));
      for (const int32_t value : {apply(TN_OP_SUB, p, change), new_m, new_v}) writer_.output(value);
      case_.aliases = {0, 2, 3};
      finish(gradient_type == TN_F32 ? "adam" : "adam with bf16 gradients", 1e-5);
    }
  }

  // Extremes of values that several kernels, or several sweeps of one, compute: where a value is its own maximum, and
  // the gradient that goes to that place. A fused multiply-add in one of them and not in the other would find no such
  // place.
  void extremes() {
    for (const tn_dtype compute : {TN_F32, TN_F64})
      for (const auto& [extent, columns] :
           {std::pair<uint8_t, int64_t>{TN_PER_ROW, 17}, {TN_PER_ROW, 1500}, {TN_PER_COLUMN, 70}, {TN_SCALAR, 300}})
        for (const uint16_t fold : {TN_OP_REDUCE_MAX, TN_OP_REDUCE_MIN}) {
          const std::string name = std::string(fold == TN_OP_REDUCE_MAX ? "largest" : "smallest") + " of " +
                                   std::to_string(columns) + (compute == TN_F64 ? " in f64" : "");
          const auto all = [&] {
            start(40, columns, compute);
            const int32_t x = input(TN_FULL), y = input(TN_FULL), z = input(TN_PER_COLUMN), w = input(TN_PER_ROW);
            return apply(TN_OP_SUB, apply(TN_OP_ADD, apply(TN_OP_MUL, x, y), z), apply(TN_OP_MUL, z, w));
          };
          const int32_t value = all();
          const int32_t extreme = writer_.reduce(fold, value, extent);
          writer_.output(extreme);
          writer_.output(apply(TN_OP_SELECT, apply(TN_OP_EQUAL, value, extreme), number(1), number(0)));
          finish(name);
          writer_.output(writer_.reduce(fold, all(), extent));
          gradient(name + ", gradient", 2e-5);
        }
  }

  void shapes() {
    for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{0, 5}, {5, 0}, {1, 1}, {1, 40}, {40, 1}})
      for (const bool varies : {true, false}) {
        start(rows, columns);
        case_.rows_vary = varies;
        const int32_t x = input(TN_FULL), r = input(TN_PER_ROW), c = input(TN_PER_COLUMN);
        writer_.output(softmax(x));
        for (const uint8_t extent : {TN_SCALAR, TN_PER_COLUMN, TN_PER_ROW}) {
          writer_.output(sum(x, extent));
          writer_.output(writer_.reduce(TN_OP_REDUCE_MAX, x, extent));
        }
        writer_.output(apply(TN_OP_ADD, sum(apply(TN_OP_MUL, x, r), TN_PER_COLUMN), c));
        writer_.output(writer_.cast(apply(TN_OP_ADD, row(), column()), TN_FLOAT));
        finish(std::to_string(rows) + (varies ? " rows, " : " fixed rows, ") + std::to_string(columns) + " columns",
               2e-5);
      }
  }

  std::mt19937_64 random_{7};
  ProgramWriter writer_;
  PointwiseCase case_;
  std::vector<CudaProgram> list_;
};

}  // namespace tenon_tests

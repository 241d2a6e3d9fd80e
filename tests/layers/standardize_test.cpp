// The layer standardize: formulas, and statistics of the data that do not depend on minibatches.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tenon/tenon_machine.hpp>
#include <tenon/tenon_updater.hpp>

#include "tests/support/layer_check.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using testing::Each;
using testing::FloatEq;
using testing::Truly;

bool is_finite(float value) { return std::isfinite(value); }

using Column = std::vector<double>;

// The values of each column of a row-major matrix.
std::vector<Column> columns_of(const std::vector<double>& x, size_t columns) {
  std::vector<Column> result(columns);
  for (size_t i = 0; i < x.size(); ++i) result[i % columns].push_back(x[i]);
  return result;
}
double mean_of(const Column& x) {
  double sum = 0;
  for (const double value : x) sum += value / static_cast<double>(x.size());
  return sum;
}
double variance_of(const Column& x) {
  double sum = 0;
  for (const double value : x) sum += std::pow(value - mean_of(x), 2) / static_cast<double>(x.size());
  return sum;
}

// The statistic of a column after `x`, from those before.
using Next = std::function<double(const FormulaArguments&, size_t column, const Column& x)>;
Formula next(size_t columns, const Next& of) {
  return [=](const FormulaArguments& a) {
    std::vector<double> result;
    const std::vector<Column> values = columns_of(a.inputs[0], columns);
    for (size_t k = 0; k < columns; ++k) result.push_back(of(a, k, values[k]));
    return result;
  };
}

// Whose buffers have values at first, which the harness draws.
LayerCase standardize(const std::vector<int64_t>& shape, bool range) {
  LayerCase layer;
  layer.type = "standardize";
  if (range) layer.attributes = {{"kind", "range"}};
  layer.inputs = {{shape, 0, -9, 9}};
  layer.output_shape = shape;
  if (range) layer.samples = {7, 33};  // of which some lie outside of the range before
  layer.tolerance = 5e-6;
  const size_t columns = shape.empty() ? 1 : static_cast<size_t>(shape.back());
  layer.formula = [=](const FormulaArguments& a) {
    std::vector<double> y = a.inputs[0];
    for (size_t i = 0; i < y.size(); ++i) {
      const auto of = [&](const char* buffer) { return a.buffers.at(buffer)[i % columns]; };
      if (range)
        y[i] = (y[i] + of("negative_low")) / (of("high") + of("negative_low"));
      else
        y[i] = (y[i] - of("mean")) / std::sqrt(of("variance"));
    }
    return y;
  };
  layer.buffers["count"] = [=](const FormulaArguments& a) {
    return std::vector<double>{a.buffers.at("count")[0] + static_cast<double>(a.inputs[0].size() / columns)};
  };
  const auto share = [](const FormulaArguments& a, const Column& x) {
    const auto rows = static_cast<double>(x.size());
    return rows / (a.buffers.at("count")[0] + rows);
  };
  if (range) {
    layer.buffers["high"] = next(columns, [](const FormulaArguments& a, size_t k, const Column& x) {
      return std::max(a.buffers.at("high")[k], *std::max_element(x.begin(), x.end()));
    });
    layer.buffers["negative_low"] = next(columns, [](const FormulaArguments& a, size_t k, const Column& x) {
      return std::max(a.buffers.at("negative_low")[k], -*std::min_element(x.begin(), x.end()));
    });
  } else {
    layer.buffers["mean"] = next(columns, [=](const FormulaArguments& a, size_t k, const Column& x) {
      return (1 - share(a, x)) * a.buffers.at("mean")[k] + share(a, x) * mean_of(x);
    });
    layer.buffers["variance"] = next(columns, [=](const FormulaArguments& a, size_t k, const Column& x) {
      const double step = mean_of(x) - a.buffers.at("mean")[k], w = share(a, x);
      return (1 - w) * a.buffers.at("variance")[k] + w * variance_of(x) + w * (1 - w) * step * step;
    });
  }
  return layer;
}

TEST(Standardize, ByDeviation) {
  EXPECT_GT(check_layer(standardize({5}, false)), 0);
  EXPECT_GT(check_layer(standardize({2, 3, 4}, false)), 0);
  EXPECT_GT(check_layer(standardize({}, false)), 0);
}
TEST(Standardize, ByRange) {
  EXPECT_GT(check_layer(standardize({5}, true)), 0);
  EXPECT_GT(check_layer(standardize({}, true)), 0);
}
TEST(Standardize, OnRowsOfSequences) { EXPECT_GT(check_layer(on_rows(standardize({3}, false))), 0); }

// A layer "y" over the data layer "x" of `columns` floats.
struct Fitted {
  explicit Fitted(int64_t columns, const Attributes& attributes = {}, int threads = 1)
      : host({threads, {plugin_folder()}, nullptr, {}}), columns_(columns) {
    DataOptions data;
    data.name = "x", data.shape = {columns};
    y = host.layer("standardize", {host.data(data)}, attributes, "y");
    parameters = host.parameters({y}, 1);
  }
  // Adds the rows in minibatches of `batch`; returns the output of the last one.
  std::vector<float> add(const std::vector<float>& x, int64_t batch) const {
    const Machine machine = made(batch, true);
    const int64_t rows = static_cast<int64_t>(x.size()) / columns_;
    std::vector<float> last;
    for (int64_t row = 0; row < rows; row += batch) {
      const int64_t count = std::min(batch, rows - row);
      last = output(machine, x.data() + row * columns_, count);
      const std::vector<float> zeros(last.size());
      backward_from(machine, {{y, {TN_F32, {count, columns_}, zeros.data()}}});
      commit(machine);
    }
    return last;
  }
  [[nodiscard]] std::vector<float> infer(const std::vector<float>& x) const {
    const int64_t rows = static_cast<int64_t>(x.size()) / columns_;
    return output(made(rows, false), x.data(), rows);
  }
  // The gradient of x in the first step of a training, from that of y.
  [[nodiscard]] std::vector<float> gradient(const std::vector<float>& x, const std::vector<float>& of_y) const {
    const int64_t rows = static_cast<int64_t>(x.size()) / columns_;
    const Machine machine = made(rows, true);
    output(machine, x.data(), rows);
    backward_from(machine, {{y, {TN_F32, {rows, columns_}, of_y.data()}}});
    const auto* const values = static_cast<const float*>(data_gradient(machine, "x").data);
    return {values, values + x.size()};
  }
  [[nodiscard]] std::vector<float> buffer(const std::string& suffix) const {
    const Array array = parameters.get("y." + suffix);
    const auto* const values = static_cast<const float*>(array.data);
    return {values, values + array.count()};
  }

  Host host;
  Layer y;
  Parameters parameters;

 private:
  [[nodiscard]] Machine made(int64_t samples, bool training) const {
    MachineOptions options;
    options.max_samples = samples;
    options.training = training;
    options.flags = training ? TN_MACHINE_GIVEN_GRADIENTS | TN_MACHINE_DATA_GRADIENTS : 0;
    return host.machine(parameters, {y}, options);
  }
  std::vector<float> output(const Machine& machine, const float* x, int64_t rows) const {
    machine.forward({{"x", {TN_F32, {rows, columns_}, x}}});
    const auto* const values = static_cast<const float*>(machine.output(y).data);
    return {values, values + rows * columns_};
  }
  int64_t columns_;
};

// Three columns: one far from 0, a tiny one, a constant one.
std::vector<float> table(int64_t rows) {
  std::vector<float> x;
  uint32_t state = 1;
  for (int64_t row = 0; row < rows; ++row) {
    const auto draw = [&] { return static_cast<double>((state = state * 1664525U + 1013904223U) >> 8) / (1 << 24); };
    x.insert(x.end(), {static_cast<float>(1e6 + 1e3 * draw()), static_cast<float>(1e-9 * (draw() - 3)), 0.1F});
  }
  return x;
}

// In one minibatch, in many, and with any number of threads; the last minibatch is not full.
TEST(Standardize, StatisticsAreThoseOfAllRows) {
  const std::vector<float> x = table(1031);
  const std::vector<Column> columns = columns_of({x.begin(), x.end()}, 3);
  for (const int64_t batch : {1031, 512, 7}) {
    const Fitted one(3);
    one.add(x, batch);
    EXPECT_EQ(one.buffer("count"), std::vector<float>{1031});
    for (size_t k = 0; k < 3; ++k) {
      const double deviation = std::sqrt(variance_of(columns[k]));
      EXPECT_NEAR(one.buffer("mean")[k], mean_of(columns[k]), 1e-3 * deviation + 1e-7 * std::abs(mean_of(columns[k])));
      EXPECT_NEAR(std::sqrt(one.buffer("variance")[k]), deviation, 1e-4 * deviation + 1e-8) << k << " " << batch;
    }
    for (const int threads : {2, 5}) {
      const Fitted other(3, {}, threads);
      other.add(x, batch);
      for (const char* suffix : {"mean", "variance"}) EXPECT_EQ(other.buffer(suffix), one.buffer(suffix)) << threads;
    }
  }
}

TEST(Standardize, ConstantColumnsAreDividedByOne) {
  for (const int64_t batch : {1031, 100, 3}) {
    const Fitted fitted(3);
    fitted.add(table(1031), batch);
    const std::vector<float> y = fitted.infer({1e6F, 0, 0.1F, 1e6F, 0, 1.1F});
    EXPECT_NEAR(y[2], 0, 1e-6) << batch;
    EXPECT_NEAR(y[5], 1, 1e-6) << batch;
    EXPECT_NEAR(y[1], 2.5 * std::sqrt(12), 0.05) << batch;
    const Fitted range(3, {{"kind", "range"}});
    range.add(table(1031), batch);
    EXPECT_EQ(range.infer({1e6F, 0, 0.1F})[2], 0);
    EXPECT_EQ(range.infer({1e6F, 0, 1.1F})[2], 1);
  }
}

// The first step of a training uses its own statistics; the later ones those before. Inference without a step leaves
// the values as they are.
TEST(Standardize, TheFirstStepUsesItsOwnStatistics) {
  const Fitted fitted(1), range(1, {{"kind", "range"}});
  EXPECT_EQ(fitted.infer({3, 5}), (std::vector<float>{3, 5}));
  EXPECT_EQ(range.infer({3, 5}), (std::vector<float>{3, 5}));
  EXPECT_EQ(fitted.add({10, 14}, 2), (std::vector<float>{-1, 1}));
  EXPECT_EQ(fitted.add({16, 12}, 2), (std::vector<float>{2, 0}));
  EXPECT_EQ(range.add({10, 14}, 2), (std::vector<float>{0, 1}));
  EXPECT_EQ(range.add({16, 12}, 2), (std::vector<float>{1.5F, 0.5F}));
  EXPECT_EQ(range.infer({10, 16}), (std::vector<float>{0, 1}));
  EXPECT_EQ(fitted.buffer("mean"), std::vector<float>{13});
  EXPECT_EQ(fitted.buffer("variance"), std::vector<float>{5});
}

// In the first step the statistics depend on the rows. The root of the variance of a constant column, and of a single
// row, has no derivative; the column is divided by 1, so that only the mean depends on it.
TEST(Standardize, TheFirstStepHasGradients) {
  for (const char* kind : {"deviation", "range"}) {
    const Fitted fitted(2, {{"kind", kind}});
    EXPECT_THAT(fitted.gradient({1, 7, 3, 7, 5, 7}, {1, 2, 3, 4, 8, 6}), Each(Truly(is_finite))) << kind;
    EXPECT_THAT(fitted.gradient({1, 7}, {1, 2}), Each(FloatEq(0))) << kind;
  }
  const std::vector<float> slopes = Fitted(2).gradient({1, 7, 3, 7, 5, 7}, {1, 2, 3, 4, 8, 6});
  const double deviation = std::sqrt(8.0 / 3);
  const std::vector<double> y = {-2 / deviation, 0, 2 / deviation}, g = {1, 3, 8};
  for (size_t i = 0; i < 3; ++i) {  // (g - mean g - y mean(g y)) / deviation
    EXPECT_NEAR(slopes[2 * i], (g[i] - 4 - y[i] * (7 * 2 / deviation / 3)) / deviation, 1e-5);
    EXPECT_FLOAT_EQ(slopes[2 * i + 1], static_cast<float>(2 * static_cast<int>(i) - 2));
  }
}

TEST(Standardize, RefusesBadInput) {
  const Host host({1, {plugin_folder()}, nullptr, {}});
  DataOptions data;
  data.name = "x", data.shape = {2};
  try {
    (void)host.layer("standardize", {host.data(data)}, {{"kind", "rank"}}, "bad");
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), TN_INVALID);
    EXPECT_NE(std::string(error.what()).find("\"kind\""), std::string::npos) << error.what();
  }
}

}  // namespace

}  // namespace tenon_tests

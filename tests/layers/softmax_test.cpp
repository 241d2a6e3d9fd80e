// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "tests/support/layer_check.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

std::vector<double> softmax_rows(std::vector<double> x, size_t columns) {
  for (size_t row = 0; row < x.size(); row += columns) {
    const double most = *std::max_element(x.begin() + static_cast<std::ptrdiff_t>(row),
                                          x.begin() + static_cast<std::ptrdiff_t>(row + columns));
    double sum = 0;
    for (size_t i = row; i < row + columns; ++i) sum += std::exp(x[i] - most);
    for (size_t i = row; i < row + columns; ++i) x[i] = std::exp(x[i] - most) / sum;
  }
  return x;
}

TEST(Softmax, OverTheLastDimension) {
  for (const int64_t columns : {1, 2, 10, 301}) {
    LayerCase layer;
    layer.type = "softmax";
    layer.gradient_rounded = 1;  // y (dy - the sum of y dy)
    layer.inputs = {{{columns}, 0, -5, 5}};
    layer.output_shape = {columns};
    layer.formula = [columns](const FormulaArguments& a) {
      return softmax_rows(a.inputs[0], static_cast<size_t>(columns));
    };
    layer.samples = {1, 5};
    EXPECT_GT(check_layer(layer), 0);
  }
}

// Applies `of_rows` to the classes along a dimension of a sample's shape.
using OfRows = std::vector<double> (*)(std::vector<double>, size_t);
LayerCase along(const std::string& type, OfRows of_rows, const std::vector<int64_t>& shape, int64_t axis,
                size_t dimension) {
  LayerCase layer;
  layer.type = type;
  layer.attributes = {{"axis", axis}};
  layer.gradient_rounded = 1;
  layer.inputs = {{shape, 0, -5, 5}};
  layer.output_shape = shape;
  layer.formula = [=](const FormulaArguments& a) {
    const auto classes = static_cast<size_t>(shape[dimension]);
    size_t step = 1;
    for (size_t i = dimension + 1; i < shape.size(); ++i) step *= static_cast<size_t>(shape[i]);
    std::vector<double> y = a.inputs[0];
    for (size_t i = 0; i < y.size(); ++i) {
      if (i / step % classes != 0) continue;
      std::vector<double> row;
      for (size_t k = 0; k < classes; ++k) row.push_back(y[i + k * step]);
      row = of_rows(row, classes);
      for (size_t k = 0; k < classes; ++k) y[i + k * step] = row[k];
    }
    return y;
  };
  return layer;
}

TEST(Softmax, OverAnyAxis) {
  EXPECT_GT(check_layer(along("softmax", softmax_rows, {3, 4}, 1, 0)), 0);
  EXPECT_GT(check_layer(along("softmax", softmax_rows, {3, 4}, -1, 1)), 0);
  EXPECT_GT(check_layer(along("softmax", softmax_rows, {3, 4, 2}, -2, 1)), 0);
}

std::vector<double> log_softmax_rows(std::vector<double> x, size_t columns) {
  for (size_t row = 0; row < x.size(); row += columns) {
    const double most = *std::max_element(x.begin() + static_cast<std::ptrdiff_t>(row),
                                          x.begin() + static_cast<std::ptrdiff_t>(row + columns));
    double sum = 0;
    for (size_t i = row; i < row + columns; ++i) sum += std::exp(x[i] - most);
    for (size_t i = row; i < row + columns; ++i) x[i] -= most + std::log(sum);
  }
  return x;
}
TEST(LogSoftmax, OverAnyAxis) {
  const auto check = [](const std::vector<int64_t>& shape, int64_t axis, size_t dimension) {
    LayerCase layer = along("log_softmax", log_softmax_rows, shape, axis, dimension);
    layer.rounded = [](const FormulaArguments& a) { return std::vector<double>(a.inputs[0].size(), 1); };  // log(1 + e)
    EXPECT_GT(check_layer(layer), 0);
  };
  check({7}, -1, 0);
  check({1}, 1, 0);
  check({3, 4}, 1, 0);
  check({3, 4, 2}, -2, 1);
}
// Where the probability is smaller than any float, its logarithm is not.
TEST(LogSoftmax, OfDistantScores) {
  const Host host(HostOptions{1, {tenon_tests::plugin_folder()}, nullptr, {}});
  const Layer y = host.layer("log_softmax", {host.data({"x", TN_F32, {2}})}, {}, "y");
  MachineOptions options;
  options.training = false;
  options.max_samples = 1;
  const Machine machine = host.machine(host.parameters({y}, 1), {y}, options);
  const float x[] = {-500, 500};
  machine.forward({{"x", {TN_F32, {1, 2}, x}}});
  const auto* values = static_cast<const float*>(machine.output(y).data);
  EXPECT_EQ(values[0], -1000);
  EXPECT_EQ(values[1], 0);
}

TEST(Softmax, RefusesOtherAxes) {
  const Host host(HostOptions{1, {tenon_tests::plugin_folder()}, nullptr, {}});
  const Layer x = host.data({"x", TN_F32, {3, 4}});
  const auto message = [&](const char* type, const Attributes& attributes) -> std::string {
    try {
      (void)host.layer(type, {x}, attributes, "bad");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), TN_INVALID);
      return error.what();
    }
    return "no error";
  };
  for (const int64_t axis : {0, 3, -3})
    for (const char* type : {"softmax", "log_softmax"})
      EXPECT_NE(message(type, {{"axis", axis}}).find("has no axis " + std::to_string(axis)), std::string::npos);
  EXPECT_NE(message("softmax", {{"axis", 1}, {"size", 2}}).find("cannot be given with size"), std::string::npos);
}

TEST(Softmax, OfSparseInputNeedsASize) {
  const Host host(HostOptions{1, {tenon_tests::plugin_folder()}, nullptr, {}});
  DataOptions options;
  options.name = "words", options.storage = TN_CSR, options.shape = {5};
  const Layer words = host.data(options);
  EXPECT_THROW((void)host.layer("softmax", {words}), Error);
  EXPECT_NE(host.layer("softmax", {words}, {{"size", 3}}).describe().find("[samples, 3]"), std::string::npos);
}

// With the attribute size the layer is an expansion to fc and softmax, so it has parameters.
TEST(Softmax, WithSizeHasParameters) {
  LayerCase layer;
  layer.type = "softmax";
  layer.gradient_rounded = 500;  // as above, multiplied by the inputs of fc
  layer.attributes = {{"size", 4}};
  layer.inputs = {{{3}}};
  layer.output_shape = {4};
  layer.formula = [](const FormulaArguments& a) {
    std::vector<double> y(static_cast<size_t>(a.samples) * 4);
    for (size_t i = 0; i < y.size(); ++i) {
      y[i] = a.parameters.at("bias")[i % 4];
      for (size_t k = 0; k < 3; ++k) y[i] += a.inputs[0][i / 4 * 3 + k] * a.parameters.at("weight")[k * 4 + i % 4];
    }
    return softmax_rows(y, 4);
  };
  EXPECT_GT(check_layer(layer), 0);
}

}  // namespace
}  // namespace tenon_tests

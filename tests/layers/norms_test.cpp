// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/layer_check.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

// Normalises the last dimension; centred: layer_norm, else rms_norm. Applies the parameters that exist.
LayerCase norm(bool centred, const std::vector<int64_t>& shape, const Attributes& attributes, double epsilon = 1e-5) {
  LayerCase layer;
  layer.type = centred ? "layer_norm" : "rms_norm";
  layer.attributes = attributes;
  layer.inputs = {{shape}};
  layer.output_shape = shape;
  layer.gradient_rounded = 1e-3;  // the mean of the row and its length cancel
  layer.tolerance = 5e-6;         // fp32 rounds the mean before it is subtracted
  layer.formula = [=](const FormulaArguments& a) {
    std::vector<double> y = a.inputs[0];
    const auto columns = static_cast<size_t>(shape.back());
    for (size_t row = 0; row < y.size(); row += columns) {
      double mean = 0, square = 0;
      for (size_t i = row; centred && i < row + columns; ++i) mean += y[i] / static_cast<double>(columns);
      for (size_t i = row; i < row + columns; ++i)
        square += (y[i] - mean) * (y[i] - mean) / static_cast<double>(columns);
      for (size_t i = row; i < row + columns; ++i) {
        y[i] = (y[i] - mean) / std::sqrt(square + epsilon);
        if (const auto scale = a.parameters.find("scale"); scale != a.parameters.end()) y[i] *= scale->second[i - row];
        if (const auto shift = a.parameters.find("shift"); shift != a.parameters.end()) y[i] += shift->second[i - row];
      }
    }
    return y;
  };
  return layer;
}

TEST(LayerNorm, OverTheLastDimension) {
  EXPECT_GT(check_layer(norm(true, {7}, {})), 0);
  EXPECT_GT(check_layer(norm(true, {3, 5}, {})), 0);
  EXPECT_GT(check_layer(norm(true, {5}, {{"learnable", false}})), 0);
  LayerCase wide = norm(true, {301}, {});
  wide.samples = {1, 3};
  EXPECT_GT(check_layer(wide), 0);
}
TEST(LayerNorm, Epsilon) { EXPECT_GT(check_layer(norm(true, {6}, {{"epsilon", 0.5}}, 0.5)), 0); }

TEST(LayerNorm, OnRowsOfSequences) { EXPECT_GT(check_layer(on_rows(norm(true, {6}, {}), 2)), 0); }

TEST(RmsNorm, OverTheLastDimension) {
  EXPECT_GT(check_layer(norm(false, {7}, {})), 0);
  EXPECT_GT(check_layer(norm(false, {3, 5}, {{"shift", true}})), 0);
  EXPECT_GT(check_layer(norm(false, {5}, {{"learnable", false}})), 0);
  EXPECT_GT(check_layer(norm(false, {1}, {{"epsilon", 0.25}}, 0.25)), 0);
}

// A row of equal values has the variance 0: the output is the shift, without a division by 0.
TEST(LayerNorm, EqualValues) {
  Host host({1, {tenon_tests::plugin_folder()}, nullptr, {}});
  DataOptions data;
  data.name = "x", data.dtype = TN_F32, data.shape = {3};
  const Layer y = host.layer("layer_norm", {host.data(data)}, {}, "y");
  MachineOptions options;
  options.training = false;
  options.max_samples = 1;
  const Machine machine = host.machine(host.parameters({y}, 1), {y}, options);
  const float x[] = {1e4F, 1e4F, 1e4F};
  machine.forward({{"x", {TN_F32, {1, 3}, x}}});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(static_cast<const float*>(machine.output(y).data)[i], 0);
}

TEST(Norms, MistakesAreNamed) {
  Host host({1, {tenon_tests::plugin_folder()}, nullptr, {}});
  DataOptions data;
  data.name = "x", data.dtype = TN_F32;
  const Layer flat = host.data(data);
  data.name = "y", data.shape = {3};
  const Layer rows = host.data(data);
  const auto message = [&](const std::string& type, const Layer& input, const Attributes& attributes) -> std::string {
    try {
      (void)host.layer(type, {input}, attributes, "bad");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), TN_INVALID);
      return error.what();
    }
    return "no error";
  };
  EXPECT_NE(message("layer_norm", flat, {}).find("[samples, ..., features]"), std::string::npos);
  EXPECT_NE(message("rms_norm", flat, {}).find("[samples]"), std::string::npos);
  EXPECT_NE(message("rms_norm", rows, {{"learnable", false}, {"shift", true}}).find("shift"), std::string::npos);
  EXPECT_NE(message("layer_norm", rows, {{"epsilon", -1.0}}).find("epsilon"), std::string::npos);
}

}  // namespace
}  // namespace tenon_tests

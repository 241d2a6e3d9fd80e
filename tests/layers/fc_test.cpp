// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/support/layer_check.h"

namespace tenon::test {
namespace {

// y[i, j] = sum_k x[i, k] w[k, j] + b[j]; x is flattened behind the samples.
LayerCase fc(int64_t size, bool bias, const std::vector<int64_t>& shape) {
  LayerCase layer;
  layer.type = "fc";
  layer.attributes = {{"size", size}, {"bias", bias}};
  layer.inputs = {{shape}};
  layer.output_shape = {size};
  layer.formula = [size, bias](const FormulaArguments& a) {
    const std::vector<double>& x = a.inputs[0];
    const std::vector<double>& w = a.parameters.at("weight");
    const auto n = static_cast<size_t>(size);
    const size_t inner = w.size() / n;
    std::vector<double> y(static_cast<size_t>(a.samples) * n);
    for (size_t i = 0; i < static_cast<size_t>(a.samples); ++i)
      for (size_t j = 0; j < n; ++j) {
        double sum = bias ? a.parameters.at("bias")[j] : 0;
        for (size_t k = 0; k < inner; ++k) sum += x[i * inner + k] * w[k * n + j];
        y[i * n + j] = sum;
      }
    return y;
  };
  return layer;
}

TEST(Fc, WithBias) { EXPECT_GT(check_layer(fc(5, true, {7})), 0); }
TEST(Fc, WithoutBias) { EXPECT_GT(check_layer(fc(3, false, {4})), 0); }
TEST(Fc, FlattensItsInput) { EXPECT_GT(check_layer(fc(2, true, {3, 2, 2})), 0); }
TEST(Fc, OneToOne) { EXPECT_GT(check_layer(fc(1, true, {1})), 0); }

// y = x0 w0 + x1 w1 (+ b): each input has a weight of its own.
TEST(Fc, SeveralInputs) {
  for (const bool bias : {true, false}) {
    LayerCase layer;
    layer.type = "fc";
    layer.attributes = {{"size", 3}, {"bias", bias}};
    layer.inputs = {{{4}}, {{2, 2}}, {{5}}};
    layer.output_shape = {3};
    layer.formula = [bias](const FormulaArguments& a) {
      const char* const suffixes[] = {"weight", "weight_1", "weight_2"};
      const size_t depths[] = {4, 4, 5};
      std::vector<double> y;
      for (size_t i = 0; i < static_cast<size_t>(a.samples); ++i)
        for (size_t j = 0; j < 3; ++j) {
          double sum = bias ? a.parameters.at("bias")[j] : 0;
          for (size_t x = 0; x < 3; ++x)
            for (size_t k = 0; k < depths[x]; ++k)
              sum += a.inputs[x][i * depths[x] + k] * a.parameters.at(suffixes[x])[k * 3 + j];
          y.push_back(sum);
        }
      return y;
    };
    EXPECT_GT(check_layer(layer), 0);
  }
}

TEST(Fc, TooManyInputsAreRefused) {
  Host host({1, {TENON_PLUGINS}, nullptr, {}});
  Layers inputs;
  for (int i = 0; i < 9; ++i) {
    DataOptions data;
    data.name = "x" + std::to_string(i);
    data.dtype = TN_F32;
    data.shape = {2};
    inputs.push_back(host.data(data));
  }
  try {
    (void)host.layer("fc", inputs, {{"size", 2}}, "wide");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), TN_UNSUPPORTED);
    EXPECT_NE(std::string(error.what()).find("at most 8"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tenon::test

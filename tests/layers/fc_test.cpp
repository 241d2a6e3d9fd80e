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

}  // namespace
}  // namespace tenon::test

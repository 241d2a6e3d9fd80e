// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>

#include "tests/support/layer_check.h"

namespace tenon::test {
namespace {

LayerCase elementwise(const std::string& type, const Attributes& attributes, double (*f)(double), double kink) {
  LayerCase layer;
  layer.type = type;
  layer.attributes = attributes;
  layer.inputs = {{{3, 5}, 0, -3, 3, kink, kink == kink ? 1e-2 : 0}};
  layer.output_shape = {3, 5};
  layer.formula = [f](const FormulaArguments& a) {
    std::vector<double> y = a.inputs[0];
    for (double& value : y) value = f(value);
    return y;
  };
  return layer;
}

TEST(Activations, Relu) {
  EXPECT_GT(check_layer(elementwise(
                "relu", {}, [](double x) { return x > 0 ? x : 0; }, 0)),
            0);
}
TEST(Activations, LeakyRelu) {
  EXPECT_GT(check_layer(elementwise(
                "leaky_relu", {{"slope", 0.1}}, [](double x) { return x > 0 ? x : 0.1 * x; }, 0)),
            0);
}
TEST(Activations, Sigmoid) {
  EXPECT_GT(check_layer(elementwise(
                "sigmoid", {}, [](double x) { return 1 / (1 + std::exp(-x)); }, NAN)),
            0);
}
TEST(Activations, Tanh) {
  EXPECT_GT(check_layer(elementwise(
                "tanh", {}, [](double x) { return std::tanh(x); }, NAN)),
            0);
}

}  // namespace
}  // namespace tenon::test

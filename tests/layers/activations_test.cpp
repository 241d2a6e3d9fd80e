// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>

#include "tests/support/layer_check.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using Function = std::function<double(double)>;

// The case of f for inputs in [low, high] that stay away from the kink.
LayerCase elementwise(const std::string& type, const Attributes& attributes, const Function& f, double low = -3,
                      double high = 3, double kink = NAN) {
  LayerCase layer;
  layer.type = type;
  layer.attributes = attributes;
  layer.inputs = {{{3, 5}, 0, low, high, kink, std::isnan(kink) ? 0 : 1e-2}};
  layer.output_shape = {3, 5};
  // The derivative is computed from y, such as 1 - y * y, and loses digits where y is nearly 1.
  if (type == "elu" || type == "sigmoid" || type == "tanh") layer.gradient_rounded = 1;
  layer.formula = [f](const FormulaArguments& a) {
    std::vector<double> y = a.inputs[0];
    for (double& value : y) value = f(value);
    return y;
  };
  return layer;
}
void check(const std::string& type, const Function& f, double low = -3, double high = 3, double kink = NAN) {
  EXPECT_GT(check_layer(elementwise(type, {}, f, low, high, kink)), 0);
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return x > 30 ? x + std::exp(-x) : std::log1p(std::exp(x)); }
double gelu(double x) { return x * 0.5 * std::erfc(-x / std::numbers::sqrt2); }
// Allows the rounding error of 1 + erf below 0, multiplied by x.
LayerCase with_rounded_input(LayerCase layer) {
  layer.rounded = [](const FormulaArguments& a) { return a.inputs[0]; };
  layer.gradient_rounded = 1;
  return layer;
}
// (1 + tanh(z)) / 2 is the logistic function of 2 z, which keeps its digits below 0.
double gelu_tanh(double x) { return x * sigmoid(2 * std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)); }

TEST(Activations, Relu) {
  check(
      "relu", [](double x) { return x > 0 ? x : 0; }, -3, 3, 0);
}
TEST(Activations, LeakyRelu) {
  const auto formula = [](double x) { return x > 0 ? x : 0.1 * x; };
  EXPECT_GT(check_layer(elementwise("leaky_relu", {{"slope", 0.1}}, formula, -3, 3, 0)), 0);
}
TEST(Activations, Elu) {
  check("elu", [](double x) { return x > 0 ? x : std::expm1(x); });
  const auto formula = [](double x) { return x > 0 ? x : 0.3 * std::expm1(x); };
  EXPECT_GT(check_layer(elementwise("elu", {{"alpha", 0.3}}, formula, -3, 3, 0)), 0);
}
TEST(Activations, Sigmoid) { check("sigmoid", sigmoid); }
TEST(Activations, Tanh) {
  check("tanh", [](double x) { return std::tanh(x); });
}
TEST(Activations, Softplus) { check("softplus", softplus); }
TEST(Activations, Silu) {
  check("silu", [](double x) { return x * sigmoid(x); });
}
TEST(Activations, Gelu) {
  EXPECT_GT(check_layer(with_rounded_input(elementwise("gelu", {}, gelu))), 0);
  EXPECT_GT(check_layer(elementwise("gelu", {{"approximation", "tanh"}}, gelu_tanh)), 0);
}
// The two forms differ by more than the tolerance, so that the test of one must not accept the other.
TEST(Activations, GeluFormsAreToldApart) {
  double apart = 0;
  for (double x = -3; x < 3; x += 0.01) apart = std::max(apart, std::abs(gelu(x) - gelu_tanh(x)));
  EXPECT_GT(apart, 10 * 2e-6 * 3);
}

TEST(Mathematics, Exp) {
  check("exp", [](double x) { return std::exp(x); });
}
TEST(Mathematics, Log) {
  check(
      "log", [](double x) { return std::log(x); }, 0.1, 5);
}
TEST(Mathematics, Square) {
  check("square", [](double x) { return x * x; });
}
TEST(Mathematics, Sqrt) {
  check(
      "sqrt", [](double x) { return std::sqrt(x); }, 0.1, 5);
}
TEST(Mathematics, Abs) {
  check(
      "abs", [](double x) { return std::abs(x); }, -3, 3, 0);
}
TEST(Mathematics, Reciprocal) {
  check(
      "reciprocal", [](double x) { return 1 / x; }, 0.3, 3);
}

TEST(Activations, OnRowsOfSequences) {
  EXPECT_GT(check_layer(on_rows(elementwise("tanh", {}, [](double x) { return std::tanh(x); }))), 0);
  EXPECT_GT(check_layer(on_rows(elementwise("silu", {}, [](double x) { return x * sigmoid(x); }), 2)), 0);
}

// One number for each sample, rows longer than a task, several dimensions.
TEST(Activations, TakeAnyShape) {
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{}, {601}, {2, 3, 2}})
    for (const char* type : {"softplus", "silu"}) {
      LayerCase layer = elementwise(
          type, {}, type[1] == 'o' ? Function(softplus) : [](double x) { return x * sigmoid(x); });
      layer.inputs[0].shape = layer.output_shape = shape;
      layer.samples = {1, 3};
      EXPECT_GT(check_layer(layer), 0);
    }
}

// Large inputs overflow neither forward nor backward.
TEST(Activations, StayFiniteFarOut) {
  const auto far = [](const std::string& type, const Attributes& attributes, const Function& f) {
    EXPECT_GT(check_layer(elementwise(type, attributes, f, -1000, 1000, 0)), 0);
  };
  far("sigmoid", {}, sigmoid);
  far("softplus", {}, softplus);
  far("silu", {}, [](double x) { return x * sigmoid(x); });
  far("elu", {}, [](double x) { return x > 0 ? x : std::expm1(x); });
  EXPECT_GT(check_layer(with_rounded_input(elementwise("gelu", {}, gelu, -1000, 1000, 0))), 0);
  far("gelu", {{"approximation", "tanh"}}, gelu_tanh);
}

TEST(Activations, MistakesAreNamed) {
  Host host({1, {tenon_tests::plugin_folder()}, nullptr, {}});
  DataOptions data;
  data.name = "x", data.dtype = TN_F32, data.shape = {4};
  const Layer x = host.data(data);
  const auto message = [&](const std::string& type, const Attributes& attributes) -> std::string {
    try {
      (void)host.layer(type, {x}, attributes, "bad");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), TN_INVALID);
      return error.what();
    }
    return "no error";
  };
  EXPECT_NE(message("elu", {{"alpha", -1.0}}).find("alpha"), std::string::npos);
  EXPECT_NE(message("gelu", {{"approximation", "tang"}}).find("tanh"), std::string::npos);
}

// Integer inputs are converted to floats.
TEST(Activations, TakeIntegers) {
  Host host({1, {tenon_tests::plugin_folder()}, nullptr, {}});
  DataOptions data;
  data.name = "x", data.dtype = TN_I32, data.shape = {3};
  const Layer y = host.layer("square", {host.data(data)}, {}, "y");
  MachineOptions options;
  options.training = false;
  options.max_samples = 1;
  const Machine machine = host.machine(host.parameters({y}, 1), {y}, options);
  const int32_t x[] = {-3, 0, 5};
  machine.forward({{"x", {TN_I32, {1, 3}, x}}});
  const auto* values = static_cast<const float*>(machine.output(y).data);
  EXPECT_EQ(std::vector<float>(values, values + 3), (std::vector<float>{9, 0, 25}));
}

}  // namespace
}  // namespace tenon_tests

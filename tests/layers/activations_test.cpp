// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>
#include <utility>

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

TEST(Activations, SmoothOnes) {
  EXPECT_GT(
      check_layer(with_rounded_input(elementwise("mish", {}, [](double x) { return x * std::tanh(softplus(x)); }))), 0);
  const double scale = 1.0507009873554805, alpha = 1.6732632423543773;
  LayerCase selu = elementwise(
      "selu", {}, [=](double x) { return scale * (x > 0 ? x : alpha * std::expm1(x)); }, -3, 3, 0);
  selu.gradient_rounded = 2;
  EXPECT_GT(check_layer(selu), 0);
  LayerCase celu =
      elementwise("celu", {{"alpha", 0.5}}, [](double x) { return x > 0 ? x : 0.5 * std::expm1(x / 0.5); });
  celu.gradient_rounded = 1;
  EXPECT_GT(check_layer(celu), 0);
  check("softsign", [](double x) { return x / (1 + std::abs(x)); });
  check("log_sigmoid", [](double x) { return -softplus(-x); });
  LayerCase scaled = elementwise("scaled_tanh", {}, [](double x) { return 1.7159 * std::tanh(x * 2 / 3); });
  scaled.gradient_rounded = 1;
  EXPECT_GT(check_layer(scaled), 0);
  scaled = elementwise("scaled_tanh", {{"height", 2.0}, {"slope", 0.5}}, [](double x) { return 2 * std::tanh(x / 2); });
  scaled.gradient_rounded = 1;
  EXPECT_GT(check_layer(scaled), 0);
  EXPECT_GT(check_layer(with_rounded_input(elementwise("tanh_shrink", {}, [](double x) { return x - std::tanh(x); }))),
            0);
}

// The inputs stay away from one kink; a range that has two of them is divided.
TEST(Activations, PiecewiseOnes) {
  const auto clip = [](double low, double high) { return [=](double x) { return std::min(std::max(x, low), high); }; };
  check("relu6", clip(0, 6), -3, 5, 0);
  check("relu6", clip(0, 6), 3, 9, 6);
  check("hard_tanh", clip(-1, 1), -3, 0.9, -1);
  check("hard_tanh", clip(-1, 1), -0.9, 3, 1);
  const auto between = [&](const Attributes& attributes, double low, double high, double from, double to, double kink) {
    EXPECT_GT(check_layer(elementwise("clip", attributes, clip(low, high), from, to, kink)), 0);
  };
  between({{"low", -0.5}, {"high", 2.0}}, -0.5, 2, -3, 1.9, -0.5);
  between({{"low", -0.5}, {"high", 2.0}}, -0.5, 2, -0.4, 3, 2);
  between({{"low", 0.5}}, 0.5, INFINITY, -3, 3, 0.5);
  between({{"high", 0.5}}, -INFINITY, 0.5, -3, 3, 0.5);
  const auto hard = [](double slope, double shift) {
    return [=](double x) { return std::min(std::max(slope * x + shift, 0.0), 1.0); };
  };
  check("hard_sigmoid", hard(1.0 / 6, 0.5), -6, 2.9, -3);
  check("hard_sigmoid", hard(1.0 / 6, 0.5), -2.9, 6, 3);
  EXPECT_GT(check_layer(elementwise("hard_sigmoid", {{"slope", 0.2}}, hard(0.2, 0.5), -2.4, 6, 2.5)), 0);
  const auto swish = [](double x) { return x * std::min(std::max(x + 3, 0.0), 6.0) / 6; };
  check("hard_swish", swish, -6, 2.9, -3);
  check("hard_swish", swish, -2.9, 6, 3);
  const auto soft = [](double x) { return std::abs(x) > 0.5 ? x - std::copysign(0.5, x) : 0; };
  check("soft_shrink", soft, -3, 0.4, -0.5);
  check("soft_shrink", soft, -0.4, 3, 0.5);
  const auto shrink = [](double x) { return std::abs(x) > 1 ? x : 0; };
  EXPECT_GT(check_layer(elementwise("hard_shrink", {{"margin", 1.0}}, shrink, -3, 0.9, -1)), 0);
  EXPECT_GT(check_layer(elementwise("hard_shrink", {{"margin", 1.0}}, shrink, -0.9, 3, 1)), 0);
  const auto threshold = [](double x) { return x > 1 ? x : -2; };
  EXPECT_GT(check_layer(elementwise("threshold", {{"threshold", 1.0}, {"value", -2.0}}, threshold, -3, 3, 1)), 0);
}

// A layer of rows of 6 features, given and made.
LayerCase of_features(const std::string& type, const Attributes& attributes, int64_t made,
                      const std::function<double(const FormulaArguments&, size_t row, size_t k)>& f) {
  LayerCase layer;
  layer.type = type;
  layer.attributes = attributes;
  layer.inputs = {{{2, 6}}};
  layer.output_shape = {2, made};
  layer.gradient_rounded = 1;
  layer.formula = [=](const FormulaArguments& a) {
    std::vector<double> y;
    for (size_t row = 0; row < a.inputs[0].size() / 6; ++row)
      for (size_t k = 0; k < static_cast<size_t>(made); ++k) y.push_back(f(a, row, k));
    return y;
  };
  return layer;
}

TEST(Activations, Prelu) {
  for (const bool shared : {false, true}) {
    LayerCase layer = of_features("prelu", {{"shared", shared}}, 6, [=](const auto& a, size_t row, size_t k) {
      const double x = a.inputs[0][row * 6 + k];
      return x > 0 ? x : x * a.parameters.at("slope")[shared ? 0 : k];
    });
    layer.inputs[0].gap = 1e-2;
    EXPECT_GT(check_layer(layer), 0);
  }
}

TEST(Activations, Gates) {
  const std::vector<std::pair<std::string, Function>> gates = {{"sigmoid", sigmoid},
                                                               {"silu", [](double x) { return x * sigmoid(x); }},
                                                               {"gelu", gelu},
                                                               {"tanh", [](double x) { return std::tanh(x); }},
                                                               {"none", [](double x) { return x; }}};
  for (const auto& [name, gate] : gates) {
    LayerCase layer = of_features("glu", {{"gate", name}}, 3, [gate = gate](const auto& a, size_t row, size_t k) {
      return a.inputs[0][row * 6 + k] * gate(a.inputs[0][row * 6 + 3 + k]);
    });
    layer.inputs[0].limited = true;
    EXPECT_GT(check_layer(layer), 0) << name;
  }
}

TEST(Activations, Maxout) {
  EXPECT_GT(check_layer(of_features("maxout", {{"pieces", 3}}, 2,
                                    [](const auto& a, size_t row, size_t k) {
                                      const double* x = a.inputs[0].data() + row * 6 + k * 3;
                                      return std::max({x[0], x[1], x[2]});
                                    })),
            0);
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

TEST(Mathematics, SmoothOnes) {
  check(
      "log1p", [](double x) { return std::log1p(x); }, 0.05, 3);
  check("expm1", [](double x) { return std::expm1(x); });
  check("sin", [](double x) { return std::sin(x); });
  check("cos", [](double x) { return std::cos(x); });
  check("erf", [](double x) { return std::erf(x); });
  const auto cube = [](double x) { return x * x * x; };
  EXPECT_GT(check_layer(elementwise("power", {{"exponent", 3.0}}, cube, 0.1, 2)), 0);
  EXPECT_GT(check_layer(elementwise(
                "power", {{"exponent", -0.5}}, [](double x) { return 1 / std::sqrt(x); }, 0.3, 2)),
            0);
}
TEST(Mathematics, StepsHaveNoDerivative) {
  check(
      "floor", [](double x) { return std::floor(x); }, 0.1, 0.9);
  check(
      "round", [](double x) { return std::nearbyint(x); }, 0.6, 1.4);
  LayerCase sign = elementwise(
      "sign", {}, [](double x) { return (x > 0 ? 1 : 0) - (x < 0 ? 1 : 0); }, -3, 3, 0);
  sign.jumps = true;
  EXPECT_GT(check_layer(sign), 0);
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
  far("mish", {}, [](double x) { return x * std::tanh(softplus(x)); });
  far("log_sigmoid", {}, [](double x) { return -softplus(-x); });
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
  EXPECT_NE(message("maxout", {{"pieces", 3}}).find("3 pieces do not divide"), std::string::npos);
  EXPECT_NE(message("clip", {}).find("low: expected this bound, or high, or both"), std::string::npos)
      << message("clip", {});
  EXPECT_NE(message("clip", {{"low", 2.0}, {"high", 1.5}}).find("low: expected at most 1.5, the value of high; got 2"),
            std::string::npos);
  EXPECT_NE(message("celu", {{"alpha", 0.0}}).find("alpha: expected a number above 0, got 0"), std::string::npos);
}

// Integer inputs are converted to floats.
TEST(Activations, TakeIntegers) {
  Host host({1, {tenon_tests::plugin_folder()}, nullptr, {}});
  DataOptions data;
  data.name = "x", data.dtype = TN_I32, data.shape = {3};
  const Layer input = host.data(data);
  const Layer y = host.layer("square", {input}, {}, "y");
  const Layer sign = host.layer("sign", {input}, {}, "sign");
  MachineOptions options;
  options.training = false;
  options.max_samples = 1;
  const Machine machine = host.machine(host.parameters({y, sign}, 1), {y, sign}, options);
  const int32_t x[] = {-3, 0, 5};
  machine.forward({{"x", {TN_I32, {1, 3}, x}}});
  const auto* values = static_cast<const float*>(machine.output(y).data);
  EXPECT_EQ(std::vector<float>(values, values + 3), (std::vector<float>{9, 0, 25}));
  values = static_cast<const float*>(machine.output(sign).data);
  EXPECT_EQ(std::vector<float>(values, values + 3), (std::vector<float>{-1, 0, 1}));
}

}  // namespace
}  // namespace tenon_tests

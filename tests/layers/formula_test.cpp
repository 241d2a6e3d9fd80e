// The layer "formula": its values and gradients against fp64, and formulas that are none.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <ctime>

#include "tests/layers/layers_on_a_host.h"
#include "tests/support/layer_check.h"
#include "tests/support/small_stack.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using Join = std::function<double(const std::vector<double>&)>;

LayerCase of(const std::string& formula, size_t inputs, const Join& join, double low = -2) {
  LayerCase layer;
  layer.type = "formula";
  layer.attributes = {{"formula", formula}};
  layer.samples = {1, 2, 7};
  for (size_t i = 0; i < inputs; ++i) layer.inputs.push_back({{3, 2}, 0, low, 2});
  layer.output_shape = {3, 2};
  layer.formula = [=](const FormulaArguments& a) {
    std::vector<double> y;
    for (size_t i = 0; i < a.inputs[0].size(); ++i) {
      std::vector<double> values;
      for (size_t k = 0; k < inputs; ++k) values.push_back(a.inputs[k][i]);
      y.push_back(join(values));
    }
    return y;
  };
  return layer;
}

double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

TEST(Formula, FollowsTheText) {
  EXPECT_GT(check_layer(of("x * tanh(softplus(x))", 1, [](const auto& v) { return v[0] * std::tanh(softplus(v[0])); })),
            0);
  EXPECT_GT(check_layer(
                of("a = x * y; a - a / 4 + y", 2, [](const auto& v) { return v[0] * v[1] - v[0] * v[1] / 4 + v[1]; })),
            0);
  EXPECT_GT(
      check_layer(of("softplus(x) + sigmoid(y) * z - erf(x)", 3,
                     [](const auto& v) { return softplus(v[0]) + v[2] / (1 + std::exp(-v[1])) - std::erf(v[0]); })),
      0);
  EXPECT_GT(check_layer(of("sqrt(1 + abs(x)) - reciprocal(2 + abs(x))", 1,
                           [](const auto& v) { return std::sqrt(1 + std::abs(v[0])) - 1 / (2 + std::abs(v[0])); })),
            0);
}

TEST(Formula, Chooses) {
  LayerCase layer = of("where(x > y and not y >= 1 or x == 0, max(x, y), -clip(x, -1, 1))", 2, [](const auto& v) {
    const bool chosen = (v[0] > v[1] && !(v[1] >= 1)) || v[0] == 0;
    return chosen ? std::max(v[0], v[1]) : -std::min(std::max(v[0], -1.0), 1.0);
  });
  layer.jumps = true;
  EXPECT_GT(check_layer(layer), 0);
}

TEST(Formula, NamesOfTheInputsAreGiven) {
  LayerCase layer = of(
      "price / amount", 2, [](const auto& v) { return v[0] / v[1]; }, 0.5);
  layer.attributes.push_back({"names", std::vector<std::string>{"price", "amount"}});
  EXPECT_GT(check_layer(layer), 0);
}

using FormulaOnAHost = LayersOnAHost;

// The precedence of operators, by constants: the input only gives the shape.
TEST_F(FormulaOnAHost, HasThePrecedenceOfPython) {
  const std::pair<const char*, double> cases[] = {{"2 + 3 * 4", 14},
                                                  {"-2 ** 2", -4},
                                                  {"2 ** -1", 0.5},
                                                  {"2 ** 3 ** 2", 512},
                                                  {"8 / 4 / 2", 1},
                                                  {"7 - 4 - 2", 1},
                                                  {"1 < 2", 1},
                                                  {"not 1 > 2 and 2 > 1", 1},
                                                  {"(1 + 2) * 3", 9},
                                                  {"- - 3", 3},
                                                  {"1 or 1 and 0", 1},
                                                  {".5 + 1e1", 10.5},
                                                  {"a = 2; b = a * a; b + a", 6}};
  const std::vector<float> x = {1, -2};
  for (const auto& [text, value] : cases) {
    const Layer layer = host_.layer("formula", {data("x", {1})}, {{"formula", text}});
    MachineOptions options;
    options.max_samples = 2;
    const Machine machine = host_.machine(host_.parameters({layer}, 1), {layer}, options);
    machine.forward({{"x", {TN_F32, {2, 1}, x.data()}}});
    const Array output = machine.output(layer);
    EXPECT_EQ(output.shape, (std::vector<int64_t>{2, 1})) << text;
    for (int i = 0; i < 2; ++i) EXPECT_EQ(static_cast<const float*>(output.data)[i], static_cast<float>(value)) << text;
  }
}

// Each pass over the instructions is linear, up to the longest formula: a quadratic one took 20 s for it.
TEST_F(FormulaOnAHost, ManyTermsTakeTimeInProportion) {
  const auto seconds = [&](int terms) {
    std::string formula = "0";
    for (int i = 0; i < terms; ++i) formula += "+exp(x*" + std::to_string(i) + ".5)";
    const std::clock_t before = std::clock();
    const Layer sum = host_.layer("formula", {data("x", {2})}, {{"formula", formula}}, "sum");
    const Layer cost =
        host_.layer("sum_cost", {host_.layer("add", {sum, host_.layer("parameter", {sum})})}, {}, "cost");
    MachineOptions options;
    options.max_samples = 1, options.training = true;
    const Machine machine = host_.machine(host_.parameters({cost}, 1), {sum, cost}, options);
    const float x[2] = {0, 0};
    machine.forward({{"x", {TN_F32, {1, 2}, x}}});
    EXPECT_EQ(static_cast<const float*>(machine.output(sum).data)[0], static_cast<float>(terms));
    return static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  };
  seconds(10);  // loads the plugins
  EXPECT_LT(seconds(4000), 5) << "of processor time";
}

// The parser uses no stack for what is nested, so the deepest formulas are read on the smallest stack.
TEST_F(FormulaOnAHost, NeedsALittleStackHoweverDeepItIs) {
  struct Nest {
    std::string open, close;
    int most;  // levels
    double value;
  };
  const std::vector<Nest> nests = {{"(1 + ", ")", 99, 100},      {"exp(0 * ", ")", 99, 1},
                                   {"where(1, ", ", 0)", 99, 1}, {"max(0, min(2, ", "))", 49, 1},
                                   {"- ", "", 198, 1},           {"not ", "", 198, 1},
                                   {"1 ** ", "", 198, 1},        {"1 < 2 and (0 or not not ", ")", 98, 1},
                                   {"1 ** - (- ", ")", 39, 1},   {"(0 < ", ")", 99, 1}};
  const auto nested = [](const Nest& nest, int levels) {
    std::string open, close;
    for (int i = 0; i < levels; ++i) open += nest.open, close += nest.close;
    return open + "1" + close;
  };
  for (const Nest& nest : nests) {
    SCOPED_TRACE(nest.open);
    Layer layer;
    std::string refusal;
    EXPECT_EQ(on_a_stack(size_t{128} << 10,
                         [&] {
                           refusal = mistake("formula", {data("x", {1})}, {{"formula", nested(nest, nest.most + 1)}});
                           layer = host_.layer("formula", {data("x", {1})}, {{"formula", nested(nest, nest.most)}});
                         }),
              "");
    EXPECT_NE(refusal.find("is nested more than 200 deep"), std::string::npos) << refusal;
    MachineOptions options;
    options.max_samples = 1;
    const Machine machine = host_.machine(host_.parameters({layer}, 1), {layer}, options);
    const float x = 3;
    machine.forward({{"x", {TN_F32, {1, 1}, &x}}});
    EXPECT_EQ(static_cast<const float*>(machine.output(layer).data)[0], static_cast<float>(nest.value));
  }
}

TEST_F(FormulaOnAHost, MistakesAreToldWithTheirPlace) {
  const auto said = [&](const std::string& formula, const Attributes& more = {}) {
    Attributes attributes = {{"formula", formula}};
    attributes.insert(attributes.end(), more.begin(), more.end());
    return mistake("formula", {data("x", {3})}, attributes);
  };
  const std::pair<const char*, const char*> cases[] = {{"x +", "character 4: expected a value, found the end"},
                                                       {"foo(x)", "character 1: unknown function \"foo\""},
                                                       {"x y", "character 3: unexpected \"y\""},
                                                       {"1 + q", "character 5: unknown name \"q\"; names: x"},
                                                       {"max(x)", "max takes 2 arguments, got 1"},
                                                       {"x < 1 < 2", "comparisons do not chain"},
                                                       {"", "character 1: expected a value"},
                                                       {"a = 1", "expected \";\", found the end"},
                                                       {"x = 2; x", "\"x\" has a value already"},
                                                       {"sin = 2; x", "\"sin\" is taken"},
                                                       {"1e999", "no number that can be held"},
                                                       {"(x", "expected \")\", found the end"},
                                                       {"and", "expected a value, found \"and\""}};
  for (const auto& [formula, part] : cases)
    EXPECT_NE(said(formula).find(part), std::string::npos) << formula << ": " << said(formula);
  const std::string deep(100'000, '(');
  EXPECT_NE(said(deep.substr(0, 5000)).find("deep"), std::string::npos);
  EXPECT_NE(said(deep).find("characters"), std::string::npos);
  for (const auto& [names, part] : {std::pair<std::vector<std::string>, const char*>{{"x", "y"}, "are 2, of 1 inputs"},
                                    {{"1x"}, "\"1x\", which is no name"},
                                    {{"not"}, "\"not\", which is no name"}})
    EXPECT_NE(said("1", {{"names", names}}).find(part), std::string::npos) << said("1", {{"names", names}});
}

}  // namespace
}  // namespace tenon_tests

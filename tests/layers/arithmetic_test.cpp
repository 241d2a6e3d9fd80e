// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/support/layer_check.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using Join = std::function<double(double, double)>;

// The case of inputs combined by `join` from the first to the last.
LayerCase joined(const std::string& type, size_t inputs, const std::vector<int64_t>& shape, const Join& join,
                 double low = -2) {
  LayerCase layer;
  layer.type = type;
  for (size_t i = 0; i < inputs; ++i) layer.inputs.push_back({shape, 0, low, 2});
  layer.output_shape = shape;
  layer.formula = [=](const FormulaArguments& a) {
    std::vector<double> y = a.inputs[0];
    for (size_t k = 1; k < inputs; ++k)
      for (size_t i = 0; i < y.size(); ++i) y[i] = join(y[i], a.inputs[k][i]);
    return y;
  };
  return layer;
}

TEST(Arithmetic, Add) {
  for (const size_t inputs : {1U, 2U, 5U}) EXPECT_GT(check_layer(joined("add", inputs, {3, 2}, std::plus<>())), 0);
}
TEST(Arithmetic, Sub) { EXPECT_GT(check_layer(joined("sub", 2, {5}, std::minus<>())), 0); }
TEST(Arithmetic, Mul) {
  for (const size_t inputs : {1U, 2U, 3U, 4U})
    EXPECT_GT(check_layer(joined("mul", inputs, {5}, std::multiplies<>())), 0);
}
TEST(Arithmetic, Div) { EXPECT_GT(check_layer(joined("div", 2, {2, 3}, std::divides<>(), 0.5)), 0); }
TEST(Arithmetic, OneNumberForEachSample) { EXPECT_GT(check_layer(joined("sub", 2, {}, std::minus<>())), 0); }

TEST(Arithmetic, OnRowsOfSequences) { EXPECT_GT(check_layer(on_rows(joined("mul", 3, {5}, std::multiplies<>()))), 0); }

TEST(Arithmetic, ScaleAndShift) {
  LayerCase layer;
  layer.type = "scale_shift";
  layer.attributes = {{"scale", -2.5}, {"shift", 0.75}};
  layer.inputs = {{{3, 2}}};
  layer.output_shape = {3, 2};
  layer.formula = [](const FormulaArguments& a) {
    std::vector<double> y = a.inputs[0];
    for (double& value : y) value = -2.5 * value + 0.75;
    return y;
  };
  EXPECT_GT(check_layer(layer), 0);
  layer.attributes.push_back({"learnable", true});
  layer.formula = [](const FormulaArguments& a) {
    std::vector<double> y = a.inputs[0];
    for (size_t i = 0; i < y.size(); ++i)
      y[i] = a.parameters.at("scale")[i % 2] * y[i] + a.parameters.at("shift")[i % 2];
    return y;
  };
  EXPECT_GT(check_layer(layer), 0);
}

TEST(Arithmetic, ScaleAndShiftBeginAtTheAttributes) {
  Host host({1, {tenon_tests::plugin_folder()}, nullptr, {}});
  DataOptions data;
  data.name = "x", data.dtype = TN_F32, data.shape = {2};
  const Attributes attributes = {{"scale", 2.0}, {"shift", -1.0}, {"learnable", true}};
  const Layer y = host.layer("scale_shift", {host.data(data)}, attributes, "y");
  const Parameters parameters = host.parameters({y}, 1);
  EXPECT_EQ(static_cast<const float*>(parameters.get("y.scale").data)[1], 2);
  EXPECT_EQ(static_cast<const float*>(parameters.get("y.shift").data)[1], -1);
}

// The gradients that one value gets through two ports are added.
TEST(Arithmetic, OneValueAtBothPorts) {
  const auto gradient = [](const std::string& type, size_t times) {
    Host host({1, {tenon_tests::plugin_folder()}, nullptr, {}});
    DataOptions data;
    data.name = "x", data.dtype = TN_F32, data.shape = {3};
    const Attributes attributes = {{"scale", 0.5}, {"shift", 0.25}, {"learnable", true}};
    const Layer s = host.layer("scale_shift", {host.data(data)}, attributes, "s");
    const Layer total = host.layer("sum", {host.layer(type, Layers(times, s), {}, "joined")}, {}, "total");
    const Layer cost = host.layer("should_be_false", {total}, {}, "cost");
    MachineOptions options;
    options.training = true;
    options.max_samples = 1;
    const Machine machine = host.machine(host.parameters({cost}, 1), {cost}, options);
    const float x[] = {-1, 0.5F, 2};
    machine.forward({{"x", {TN_F32, {1, 3}, x}}});
    machine.backward();
    const auto* values = static_cast<const float*>(machine.gradient("s.shift").data);
    return std::vector<float>(values, values + 3);
  };
  const std::vector<float> once = gradient("square", 1), twice = gradient("mul", 2);
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(once[i], twice[i], 1e-6);
  EXPECT_GT(std::abs(once[2]), 0.1);
  EXPECT_EQ(gradient("sub", 2), (std::vector<float>{0, 0, 0}));
}

TEST(Arithmetic, NamesBothShapesWhereTheyDiffer) {
  Host host({1, {tenon_tests::plugin_folder()}, nullptr, {}});
  const auto data = [&](const char* name, const std::vector<int64_t>& shape) {
    DataOptions options;
    options.name = name, options.dtype = TN_F32, options.shape = shape;
    return host.data(options);
  };
  const Layer x = data("x", {3, 4}), y = data("y", {4}), z = data("z", {});
  const auto message = [&](const std::string& type, const Layers& inputs, const Attributes& attributes = {}) {
    try {
      (void)host.layer(type, inputs, attributes, "bad");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  for (const char* type : {"add", "sub", "mul", "div"}) {
    const std::string said = message(type, {x, y});
    EXPECT_NE(said.find("[samples, 3, 4]"), std::string::npos) << said;
    EXPECT_NE(said.find("[samples, 4]"), std::string::npos) << said;
  }
  EXPECT_NE(message("add", {x, x, y}).find("number 2"), std::string::npos);
  EXPECT_NE(message("add", Layers(17, x)).find("at most 16"), std::string::npos);
  EXPECT_NE(message("scale_shift", {z}, {{"learnable", true}}).find("[samples, ..., features]"), std::string::npos);
}

}  // namespace
}  // namespace tenon_tests

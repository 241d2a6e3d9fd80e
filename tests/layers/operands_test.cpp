// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/layer_check.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using Sizes = std::vector<int64_t>;
using Numbers = std::vector<double>;

// The case of a parameter of `shape`, like rows of shape `like`.
LayerCase repeated(const std::vector<int64_t>& like, const std::vector<int64_t>& shape) {
  LayerCase layer;
  layer.type = "parameter";
  layer.inputs = {{like, 4}};  // integers, since like gets no gradient
  layer.output_shape = shape;
  layer.formula = [](const FormulaArguments& a) {
    const std::vector<double>& row = a.parameters.at("value");
    std::vector<double> y;
    for (int64_t i = 0; i < a.samples; ++i) y.insert(y.end(), row.begin(), row.end());
    return y;
  };
  return layer;
}

TEST(Operands, ParameterLikeARow) { EXPECT_GT(check_layer(repeated({3, 2}, {3, 2})), 0); }

TEST(Operands, ParameterOfAnotherShape) {
  LayerCase layer = repeated({3}, {5, 2});
  layer.attributes = {{"shape", Sizes{5, 2}}};
  EXPECT_GT(check_layer(layer), 0);
}

TEST(Operands, OneNumberForEachSample) {
  EXPECT_GT(check_layer(repeated({}, {})), 0);
  LayerCase layer = repeated({4}, {});
  layer.attributes = {{"shape", Sizes{}}};
  EXPECT_GT(check_layer(layer), 0);
}

TEST(Operands, ParameterLikeOneNumber) {
  LayerCase layer = repeated({}, {3});
  layer.attributes = {{"shape", 3}};
  EXPECT_GT(check_layer(layer), 0);
}

TEST(Operands, OnRowsOfSequences) { EXPECT_GT(check_layer(on_rows(repeated({4}, {4}))), 0); }

DataOptions floats(const std::string& name, const std::vector<int64_t>& shape) {
  DataOptions options;
  options.name = name, options.dtype = TN_F32, options.shape = shape;
  return options;
}

// The numbers of `like` are not read, so that the worst of them do no harm, and it gets no gradient from here.
TEST(Operands, NumbersOfLikeAreNotRead) {
  Host host({1, {tenon_tests::plugin_folder()}, nullptr, {}});
  const Layer x = host.data(floats("x", {2}));
  const Attributes init = {{"param.value.init", "constant"}, {"param.value.init_value", 1.5}};
  const Layer p = host.layer("parameter", {x}, init, "p");
  const Layer cost = host.layer("should_be_false", {host.layer("sum", {p}, {}, "total")}, {}, "cost");
  MachineOptions options;
  options.training = true, options.max_samples = 3;
  const Machine machine = host.machine(host.parameters({cost, p}, 1), {cost, p}, options);
  constexpr float kBad = std::numeric_limits<float>::quiet_NaN();
  const float numbers[] = {kBad, kBad, kBad, kBad, kBad, kBad};
  machine.forward({{"x", {TN_F32, {3, 2}, numbers}}});
  machine.backward();
  const auto* const y = static_cast<const float*>(machine.output(p).data);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(y[i], 1.5F);
  const auto* const gradient = static_cast<const float*>(machine.gradient("p.value").data);
  EXPECT_TRUE(gradient[0] > 0 && gradient[0] == gradient[1]);
}

// A scale and an offset that are constants: 2 x + [0.5, -1]. Also of no samples.
TEST(Operands, Constants) {
  Host host({1, {tenon_tests::plugin_folder()}, nullptr, {}});
  const Layer x = host.data(floats("x", {2}));
  const Layer two = host.layer("constant", {x}, {{"value", 2}}, "two");
  const Layer offset = host.layer("constant", {x}, {{"shape", 2}, {"value", Numbers{0.5, -1}}}, "offset");
  const Layer y = host.layer("add", {host.layer("mul", {x, two}, {}, "product"), offset}, {}, "y");
  MachineOptions options;
  options.max_samples = 2;
  const Machine machine = host.machine(host.parameters({y, offset}, 1), {y, offset}, options);
  const float numbers[] = {1, 2, 3, 4};
  machine.forward({{"x", {TN_F32, {2, 2}, numbers}}});
  const auto* const made = static_cast<const float*>(machine.output(y).data);
  EXPECT_EQ(std::vector<float>(made, made + 4), (std::vector<float>{2.5F, 3, 6.5F, 7}));
  const auto* const given = static_cast<const float*>(machine.output(offset).data);
  EXPECT_EQ(std::vector<float>(given, given + 4), (std::vector<float>{0.5F, -1, 0.5F, -1}));
  machine.forward({{"x", {TN_F32, {0, 2}, numbers}}});
  EXPECT_EQ(machine.output(y).shape, (Sizes{0, 2}));
}

TEST(Operands, RefuseWrongInput) {
  Host host({1, {tenon_tests::plugin_folder()}, nullptr, {}});
  const Layer x = host.data(floats("x", {2})), none = host.data(floats("none", {0}));
  const auto refusal = [&](const std::string& type, const Layers& inputs, const Attributes& attributes) {
    try {
      (void)host.layer(type, inputs, attributes, "bad");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), TN_INVALID);
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const auto expect = [&](const std::string& said, const std::string& part) {
    EXPECT_NE(said.find(part), std::string::npos) << said;
    EXPECT_NE(said.find("\"bad\""), std::string::npos) << said;
  };
  expect(refusal("parameter", {}, {}), "input \"like\" is missing");
  expect(refusal("parameter", {none}, {}), "has no elements");
  expect(refusal("parameter", {x}, {{"shape", Sizes{3, 0}}}), "\"shape\"");
  expect(refusal("parameter", {x}, {{"shape", Sizes(8, 1)}}), "more than 7 dimensions");
  expect(refusal("parameter", {x}, {{"shape", Sizes(2, int64_t{1} << 40)}}), "more than 2^63 - 1");
  expect(refusal("constant", {x}, {}), "\"value\"");
  expect(refusal("constant", {x}, {{"value", Numbers{1, 2, 3}}}), "has 3 numbers; expected 1 or 2");
  expect(refusal("constant", {x}, {{"value", Numbers{1e300, 0}}}), "float32 cannot hold");
  expect(refusal("constant", {x}, {{"value", std::nan("")}}), "\"value\"");
}

}  // namespace
}  // namespace tenon_tests

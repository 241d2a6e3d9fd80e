// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/layers/layers_on_a_host.h"
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

// The case of inputs of several shapes that are broadcast to `result`.
LayerCase spread(const std::string& type, const std::vector<std::vector<int64_t>>& shapes,
                 const std::vector<int64_t>& result, const std::function<double(const std::vector<double>&)>& join,
                 double low = -2) {
  LayerCase layer;
  layer.type = type;
  for (const auto& shape : shapes) layer.inputs.push_back({shape, 0, low, 2});
  layer.output_shape = result;
  layer.formula = [=](const FormulaArguments& a) {
    int64_t width = 1;
    for (const int64_t size : result) width *= size;
    std::vector<double> y;
    for (int64_t i = 0; i < a.samples * width; ++i) {
      std::vector<double> operands;
      for (size_t k = 0; k < shapes.size(); ++k) {
        int64_t at = 0, step = 1, rest = i % width;  // from the last dimension to the first
        for (size_t d = 0; d < result.size(); ++d) {
          const int64_t index = rest % result[result.size() - 1 - d];
          rest /= result[result.size() - 1 - d];
          if (d >= shapes[k].size()) continue;
          const int64_t size = shapes[k][shapes[k].size() - 1 - d];
          at += (size == 1 ? 0 : index) * step;
          step *= size;
        }
        operands.push_back(a.inputs[k][static_cast<size_t>(i / width * step + at)]);
      }
      y.push_back(join(operands));
    }
    return y;
  };
  return layer;
}

TEST(Arithmetic, Broadcasts) {
  using Shapes = std::vector<std::vector<int64_t>>;
  const auto first_two = [](const std::function<double(double, double)>& join) {
    return [join](const std::vector<double>& x) { return join(x[0], x[1]); };
  };
  const auto check = [&](const Shapes& shapes, const std::vector<int64_t>& result) {
    EXPECT_GT(check_layer(spread("mul", shapes, result, first_two(std::multiplies<>()))), 0);
    EXPECT_GT(check_layer(spread("sub", shapes, result, first_two(std::minus<>()))), 0);
  };
  check({{3, 4}, {4}}, {3, 4});           // along the first dimension of a sample
  check({{3, 1}, {3, 4}}, {3, 4});        // along the last one
  check({{}, {3, 4}}, {3, 4});            // one number of each sample
  check({{3, 1}, {1, 4}}, {3, 4});        // both
  check({{2, 1, 3}, {4, 1}}, {2, 4, 3});  // in the middle, with a missing dimension
  check({{2, 1, 1}, {1, 4, 3}}, {2, 4, 3});
  check({{1}, {}}, {1});
  EXPECT_GT(check_layer(spread("div", {{3, 4}, {3, 1}}, {3, 4}, first_two(std::divides<>()), 0.5)), 0);
  EXPECT_GT(check_layer(spread("add", {{2, 1, 1}, {2, 4, 1}, {3}, {2, 4, 3}}, {2, 4, 3},
                               [](const std::vector<double>& x) { return x[0] + x[1] + x[2] + x[3]; })),
            0);
  EXPECT_GT(check_layer(on_rows(spread("mul", {{3, 4}, {4}}, {3, 4}, first_two(std::multiplies<>())))), 0);
}

TEST(Expand, RepeatsAsBroadcastingDoes) {
  using Shape = std::vector<int64_t>;
  const auto check = [](const Shape& from, const Shape& attribute, const Shape& to) {
    LayerCase layer = spread("expand", {from}, to, [](const std::vector<double>& x) { return x[0]; });
    layer.attributes = {{"shape", attribute}};
    EXPECT_GT(check_layer(layer), 0);
  };
  check({3}, {2, 3}, {2, 3});
  check({2, 1}, {-1, 4}, {2, 4});
  check({1, 3, 1}, {2, -1, 2}, {2, 3, 2});
  check({2, 3}, {2, -1}, {2, 3});
  check({3}, {1, 3}, {1, 3});
  check({}, {2}, {2});
}

TEST(Arithmetic, ExtremesAndPowers) {
  const auto maximum = [](double a, double b) { return std::max(a, b); };
  const auto minimum = [](double a, double b) { return std::min(a, b); };
  EXPECT_GT(check_layer(joined("maximum", 2, {2, 3}, maximum)), 0);
  EXPECT_GT(check_layer(joined("minimum", 2, {2, 3}, minimum)), 0);
  EXPECT_GT(check_layer(joined(
                "pow", 2, {2, 3}, [](double a, double b) { return std::pow(a, b); }, 0.3)),
            0);
  EXPECT_GT(check_layer(spread("maximum", {{3, 4}, {4}}, {3, 4},
                               [](const std::vector<double>& x) { return std::max(x[0], x[1]); })),
            0);
}

// What a layer answers for given rows of 6 numbers.
std::vector<float> answer(const std::string& type, const std::vector<std::vector<float>>& inputs,
                          const Attributes& attributes = {}) {
  Host host({1, {tenon_tests::plugin_folder()}, nullptr, {}});
  Layers layers;
  std::vector<Feed> feeds;
  for (const std::vector<float>& values : inputs) {
    DataOptions data;
    data.name = "x" + std::to_string(layers.size()), data.dtype = TN_F32, data.shape = {6};
    layers.push_back(host.data(data));
    feeds.push_back({data.name, {TN_F32, {1, 6}, values.data()}});
  }
  const Layer y = host.layer(type, layers, attributes, "y");
  MachineOptions options;
  options.max_samples = 1;
  const Machine machine = host.machine(host.parameters({y}, 1), {y}, options);
  machine.forward(feeds);
  const auto* const values = static_cast<const float*>(machine.output(y).data);
  return {values, values + 6};
}

TEST(Comparisons, AnswerOneOrZero) {
  using Row = std::vector<float>;
  const Row a = {1, 2, 3, 0, -1, 0}, b = {2, 2, 1, 0, 0, 5};
  EXPECT_EQ(answer("equal", {a, b}), (Row{0, 1, 0, 1, 0, 0}));
  EXPECT_EQ(answer("not_equal", {a, b}), (Row{1, 0, 1, 0, 1, 1}));
  EXPECT_EQ(answer("less", {a, b}), (Row{1, 0, 0, 0, 1, 1}));
  EXPECT_EQ(answer("less_equal", {a, b}), (Row{1, 1, 0, 1, 1, 1}));
  EXPECT_EQ(answer("greater", {a, b}), (Row{0, 0, 1, 0, 0, 0}));
  EXPECT_EQ(answer("greater_equal", {a, b}), (Row{0, 1, 1, 1, 0, 0}));
  EXPECT_EQ(answer("logical_and", {a, b}), (Row{1, 1, 1, 0, 0, 0}));
  EXPECT_EQ(answer("logical_or", {a, b}), (Row{1, 1, 1, 0, 1, 1}));
  EXPECT_EQ(answer("logical_xor", {a, b}), (Row{0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(answer("logical_not", {a}), (Row{0, 0, 0, 1, 0, 1}));
  EXPECT_EQ(answer("where", {{1, 0, 1, 0, 2, 0}, a, b}), (Row{1, 2, 3, 0, -1, 5}));
  EXPECT_EQ(answer("masked_fill", {a, {0, 1, 0, 0, 1, 0}}, {{"value", -9.0}}), (Row{1, -9, 3, 0, -9, 0}));
}

// Truth values and what is compared are integers here, since floats would need a derivative.
TEST(Comparisons, OfAllShapes) {
  const auto integers = [](LayerCase layer, size_t count, int64_t below) {
    for (size_t i = 0; i < count; ++i) layer.inputs[i].integers_below = below;
    return layer;
  };
  const auto less = [](const std::vector<double>& x) { return x[0] < x[1] ? 1.0 : 0.0; };
  EXPECT_GT(check_layer(integers(spread("less", {{3, 4}, {3, 4}}, {3, 4}, less), 2, 3)), 0);
  EXPECT_GT(check_layer(integers(spread("less", {{3, 4}, {4}}, {3, 4}, less), 2, 3)), 0);
  const auto where = [](const std::vector<double>& x) { return x[0] != 0 ? x[1] : x[2]; };
  EXPECT_GT(check_layer(integers(spread("where", {{3, 4}, {3, 4}, {3, 4}}, {3, 4}, where), 1, 2)), 0);
  EXPECT_GT(check_layer(integers(spread("where", {{3, 1}, {4}, {3, 4}}, {3, 4}, where), 1, 2)), 0);
  LayerCase fill =
      spread("masked_fill", {{3, 4}, {4}}, {3, 4}, [](const std::vector<double>& x) { return x[1] != 0 ? 2.5 : x[0]; });
  fill.attributes = {{"value", 2.5}};
  fill.inputs[1].integers_below = 2;
  EXPECT_GT(check_layer(fill), 0);
}

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
  const Layer x = data("x", {3, 4}), y = data("y", {3}), z = data("z", {});
  const auto message = [&](const std::string& type, const Layers& inputs, const Attributes& attributes = {}) {
    try {
      (void)host.layer(type, inputs, attributes, "bad");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  for (const char* type : {"add", "sub", "mul", "div", "maximum", "less", "where", "masked_fill"}) {
    const std::string said = message(type, type == std::string("where") ? Layers{x, x, y} : Layers{x, y});
    EXPECT_NE(said.find("[samples, 3, 4]"), std::string::npos) << said;
    EXPECT_NE(said.find("[samples, 3]"), std::string::npos) << said;
  }
  EXPECT_NE(message("add", {x, x, y}).find("input 2, from 0, "), std::string::npos);
  EXPECT_NE(message("add", Layers(17, x)).find("at most 16"), std::string::npos);
  EXPECT_NE(message("scale_shift", {z}, {{"learnable", true}}).find("[samples, ..., features]"), std::string::npos);
  const auto expand = [&](const std::vector<int64_t>& shape) { return message("expand", {x}, {{"shape", shape}}); };
  EXPECT_NE(expand({2, 3, 5}).find("[samples, 2, 3, 5]"), std::string::npos) << expand({2, 3, 5});
  EXPECT_NE(expand({2, 3, 5}).find("[samples, 3, 4]"), std::string::npos);
  for (const auto& shape : {std::vector<int64_t>{4}, {-1, 3, 4}, {}})
    EXPECT_NE(expand(shape).find("cannot be broadcast"), std::string::npos) << expand(shape);
  EXPECT_NE(expand({INT64_MAX, 3, 4}).find("too many elements"), std::string::npos);
  EXPECT_NE(expand({1, 1, 1, 1, 1, 1, 3, 4}).find("more than 7 dimensions"), std::string::npos);
}

// ---- multiplex

LayerCase multiplexed(int64_t inputs, const std::vector<int64_t>& shape) {
  LayerCase layer;
  layer.type = "multiplex";
  layer.inputs = {{{}, inputs}};
  for (int64_t i = 0; i < inputs; ++i) layer.inputs.push_back({shape});
  layer.output_shape = shape;
  layer.samples = {1, 2, 7};
  layer.formula = [=](const FormulaArguments& a) {
    std::vector<double> y;
    const size_t width = a.inputs[1].size() / std::max<size_t>(1, static_cast<size_t>(a.samples));
    for (size_t i = 0; i < a.inputs[1].size(); ++i)
      y.push_back(a.inputs[1 + static_cast<size_t>(a.inputs[0][i / width])][i]);
    return y;
  };
  return layer;
}

TEST(Multiplex, ChoosesAnInputForEachSample) {
  for (const int64_t inputs : {1, 3, 20}) EXPECT_GT(check_layer(multiplexed(inputs, {2, 3})), 0);
  EXPECT_GT(check_layer(multiplexed(2, {})), 0);
}

class MultiplexOnAHost : public LayersOnAHost {};
TEST_F(MultiplexOnAHost, MistakesNameBothShapes) {
  const Layer index = data("index", {}, TN_I64), a = data("a", {3}), b = data("b", {4});
  EXPECT_NE(mistake("multiplex", {index, a, b})
                .find("number 1 must have the shape of number 0 (expected float [samples, 3], got float [samples, 4])"),
            std::string::npos)
      << mistake("multiplex", {index, a, b});
  EXPECT_NE(mistake("multiplex", {data("wide", {3}, TN_I64), a, a}).find("index: must have one value for each row"),
            std::string::npos);
  EXPECT_NE(mistake("multiplex", {a, a, a}).find("index"), std::string::npos);
}
// What is not chosen does not matter, even if it is not a number; an index of data is checked.
TEST_F(MultiplexOnAHost, ReadsOnlyWhatIsChosen) {
  const Layer y = host_.layer("multiplex", {data("index", {}, TN_I64), data("a", {1}), data("b", {1})}, {}, "y");
  MachineOptions options;
  options.max_samples = 2;
  const Machine machine = host_.machine(host_.parameters({y}, 1), {y}, options);
  const float a[] = {1, NAN}, b[] = {INFINITY, 2};
  const auto choose = [&](const std::vector<int64_t>& index) {
    machine.forward({{"index", {TN_I64, {2}, index.data()}}, {"a", {TN_F32, {2, 1}, a}}, {"b", {TN_F32, {2, 1}, b}}});
    const auto* const made = static_cast<const float*>(machine.output(y).data);
    return std::vector<float>(made, made + 2);
  };
  EXPECT_EQ(choose({0, 1}), (std::vector<float>{1, 2}));
  EXPECT_THROW(choose({0, 2}), Error);
  EXPECT_THROW(choose({-1, 0}), Error);
}

}  // namespace
}  // namespace tenon_tests

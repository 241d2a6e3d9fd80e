// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "tests/support/layer_check.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using Shape = std::vector<int64_t>;
using Join = std::function<double(const std::vector<double>&)>;

double sum(const std::vector<double>& x) { return std::accumulate(x.begin(), x.end(), 0.0); }
double mean(const std::vector<double>& x) { return sum(x) / static_cast<double>(x.size()); }
double largest(const std::vector<double>& x) { return *std::max_element(x.begin(), x.end()); }

// The case of a reduction along `axis` of one sample's shape; negative: of all elements.
LayerCase reduced(const std::string& type, const Shape& shape, int axis, const Attributes& attributes,
                  const Join& join) {
  LayerCase layer;
  layer.type = type;
  layer.attributes = attributes;
  layer.inputs = {{shape}};
  size_t outer = 1, length = 1, inner = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    const auto size = static_cast<size_t>(shape[i]);
    const int at = static_cast<int>(i);
    (axis < 0 || at == axis ? length : at < axis ? outer : inner) *= size;
    if (axis >= 0 && at != axis) layer.output_shape.push_back(shape[i]);
  }
  layer.formula = [=](const FormulaArguments& a) {
    std::vector<double> y;
    for (size_t o = 0; o < static_cast<size_t>(a.samples) * outer; ++o)
      for (size_t i = 0; i < inner; ++i) {
        std::vector<double> line;
        for (size_t k = 0; k < length; ++k) line.push_back(a.inputs[0][(o * length + k) * inner + i]);
        y.push_back(join(line));
      }
    return y;
  };
  return layer;
}

double least(const std::vector<double>& x) { return *std::min_element(x.begin(), x.end()); }
Join variance(bool unbiased) {
  return [=](const std::vector<double>& x) {
    double squares = 0;
    for (const double value : x) squares += (value - mean(x)) * (value - mean(x));
    return squares / (static_cast<double>(x.size()) - (unbiased && x.size() > 1 ? 1 : 0));
  };
}
Join deviation(bool unbiased) {
  return [=](const std::vector<double>& x) { return std::sqrt(variance(unbiased)(x)); };
}
double length(const std::vector<double>& x) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  return std::sqrt(squares);
}
double absolute(const std::vector<double>& x) {
  double total = 0;
  for (const double value : x) total += std::abs(value);
  return total;
}
double log_sum_exp(const std::vector<double>& x) {
  double total = 0;
  for (const double value : x) total += std::exp(value - largest(x));
  return largest(x) + std::log(total);
}

TEST(Reductions, Least) {
  EXPECT_GT(check_layer(reduced("min", {2, 7}, 1, {{"axis", -1}}, least)), 0);
  EXPECT_GT(check_layer(reduced("min", {5, 2}, 0, {{"axis", 1}}, least)), 0);
}
// The mean is subtracted, which loses digits where it is large against the deviations.
TEST(Reductions, Spread) {
  const auto check = [](const std::string& type, const Shape& shape, int axis, const Attributes& attributes,
                        const Join& join) {
    LayerCase layer = reduced(type, shape, axis, attributes, join);
    layer.rounded = [join = reduced("norm", shape, axis, {}, length).formula](const FormulaArguments& a) {
      std::vector<double> size = join(a);
      for (double& value : size) value = std::max(value, value * value);
      return size;
    };
    layer.gradient_rounded = 1;
    EXPECT_GT(check_layer(layer), 0);
  };
  check("variance", {2, 7}, 1, {{"axis", -1}}, variance(false));
  check("variance", {2, 7}, 1, {{"axis", -1}, {"unbiased", true}}, variance(true));
  check("variance", {1}, -1, {{"unbiased", true}}, variance(true));
}
TEST(Reductions, StandardDeviations) {
  for (const bool unbiased : {false, true}) {
    LayerCase layer =
        reduced("standard_deviation", {5, 3}, 0, {{"axis", 1}, {"unbiased", unbiased}}, deviation(unbiased));
    layer.inputs[0].limited = true;  // where it is 0 it has no derivative
    layer.gradient_rounded = 1;
    EXPECT_GT(check_layer(layer), 0);
  }
}
TEST(Reductions, Lengths) {
  LayerCase layer = reduced("norm", {5, 3}, 0, {{"axis", 1}}, length);
  layer.inputs[0].limited = true;  // the square of a huge number is infinite
  EXPECT_GT(check_layer(layer), 0);
  EXPECT_GT(check_layer(reduced("norm", {2, 3}, -1, {{"order", 1}}, absolute)), 0);
}
TEST(Reductions, LogarithmsOfSums) {
  LayerCase layer = reduced("log_sum_exp", {2, 7}, 1, {{"axis", -1}}, log_sum_exp);
  layer.gradient_rounded = 1;
  EXPECT_GT(check_layer(layer), 0);
}

TEST(Reductions, OverTheLastAxis) {
  EXPECT_GT(check_layer(reduced("sum", {2, 7}, 1, {{"axis", -1}}, sum)), 0);
  EXPECT_GT(check_layer(reduced("mean", {2, 7}, 1, {{"axis", 2}}, mean)), 0);
  EXPECT_GT(check_layer(reduced("max", {2, 7}, 1, {{"axis", -1}}, largest)), 0);
}
TEST(Reductions, OverAnAxisBetween) {
  EXPECT_GT(check_layer(reduced("sum", {3, 2, 2}, 0, {{"axis", 1}}, sum)), 0);
  EXPECT_GT(check_layer(reduced("mean", {3, 2, 2}, 1, {{"axis", -2}}, mean)), 0);
  EXPECT_GT(check_layer(reduced("max", {5, 2}, 0, {{"axis", 1}}, largest)), 0);
}
TEST(Reductions, OverAllOfASample) {
  EXPECT_GT(check_layer(reduced("sum", {2, 3}, -1, {}, sum)), 0);
  EXPECT_GT(check_layer(reduced("mean", {301}, -1, {}, mean)), 0);
  EXPECT_GT(check_layer(reduced("max", {2, 3}, -1, {}, largest)), 0);
  EXPECT_GT(check_layer(reduced("mean", {}, -1, {}, mean)), 0);
}

double product(const std::vector<double>& x) {
  return std::accumulate(x.begin(), x.end(), 1.0, [](double a, double b) { return a * b; });
}
TEST(Reductions, Products) {
  EXPECT_GT(check_layer(reduced("product", {2, 7}, 1, {{"axis", -1}}, product)), 0);
  EXPECT_GT(check_layer(reduced("product", {5, 2}, 0, {{"axis", 1}}, product)), 0);
  EXPECT_GT(check_layer(reduced("product", {1}, -1, {}, product)), 0);
  EXPECT_GT(check_layer(reduced("product", {}, -1, {}, product)), 0);
}
// The derivative by a zero is the product of the others, and 0 where there are two zeros.
TEST(Reductions, DerivativeOfProductsWithZeros) {
  Host host({1, {tenon_tests::plugin_folder()}, nullptr, {}});
  DataOptions data;
  data.name = "x", data.dtype = TN_F32, data.shape = {3};
  const Layer shifted = host.layer("scale_shift", {host.data(data)}, {{"learnable", true}}, "shifted");
  const Layer cost = host.layer("sum_cost", {host.layer("product", {shifted}, {}, "product")}, {}, "cost");
  MachineOptions options;
  options.training = true;
  options.max_samples = 1;
  const auto slopes = [&](const std::vector<float>& x) {
    const Machine machine = host.machine(host.parameters({cost}, 1), {cost}, options);
    machine.forward({{"x", {TN_F32, {1, 3}, x.data()}}});
    machine.backward();
    const auto* values = static_cast<const float*>(machine.gradient("shifted.shift").data);
    return std::vector<float>(values, values + 3);
  };
  EXPECT_EQ(slopes({2, 0, -3}), (std::vector<float>{0, -6, 0}));
  EXPECT_EQ(slopes({0, 0, 5}), (std::vector<float>{0, 0, 0}));
}

// The case of a reduction of a sample of shape [2, 3, 2] along some of its dimensions, counted from 0.
LayerCase over_several(const std::string& type, const std::vector<size_t>& over, Attributes attributes,
                       const Shape& output, const Join& join) {
  LayerCase layer;
  layer.type = type;
  layer.attributes = std::move(attributes);
  layer.inputs = {{{2, 3, 2}}};
  layer.output_shape = output;
  layer.formula = [=](const FormulaArguments& a) {
    std::map<std::vector<size_t>, std::vector<double>> lines;  // elements by their place in the other dimensions
    for (size_t at = 0; at < a.inputs[0].size(); ++at) {
      std::vector<size_t> place{at / 12, at / 6 % 2, at / 2 % 3, at % 2};
      for (const size_t dimension : over) place[dimension + 1] = 0;
      lines[place].push_back(a.inputs[0][at]);
    }
    std::vector<double> y;
    for (const auto& [place, line] : lines) y.push_back(join(line));
    return y;
  };
  return layer;
}
TEST(Reductions, OverSeveralAxes) {
  EXPECT_GT(check_layer(over_several("sum", {0, 2}, {{"axes", Shape{3, 1}}}, {3}, sum)), 0);
  EXPECT_GT(check_layer(over_several("mean", {1, 2}, {{"axes", Shape{-1, -2}}}, {2}, mean)), 0);
  EXPECT_GT(check_layer(over_several("max", {0, 1}, {{"axes", Shape{1, 2}}}, {2}, largest)), 0);
  EXPECT_GT(check_layer(over_several("product", {0, 2}, {{"axes", Shape{1, 3}}}, {3}, product)), 0);
  EXPECT_GT(check_layer(over_several("min", {1}, {{"axes", Shape{2}}}, {2, 2}, least)), 0);
}
TEST(Reductions, DimensionsAreKept) {
  const auto kept = [](Attributes attributes) {
    attributes.push_back({"keep_dimensions", true});
    return attributes;
  };
  EXPECT_GT(check_layer(over_several("sum", {0, 2}, kept({{"axes", Shape{1, 3}}}), {1, 3, 1}, sum)), 0);
  EXPECT_GT(check_layer(over_several("product", {1}, kept({{"axis", 2}}), {2, 1, 2}, product)), 0);
  EXPECT_GT(check_layer(over_several("norm", {0, 1, 2}, kept({{"order", 1}}), {1, 1, 1}, absolute)), 0);
  EXPECT_GT(check_layer(over_several("max", {2}, {{"axis", 3}, {"keep_dimensions", false}}, {2, 3}, largest)), 0);
}

// Equal maxima: finite differences are not defined there, so the test states the shares.
TEST(Reductions, EqualsShareTheDerivativeOfMax) {
  Host host({1, {tenon_tests::plugin_folder()}, nullptr, {}});
  DataOptions data;
  data.name = "x", data.dtype = TN_F32, data.shape = {4};
  const Layer spread = host.layer("scale_shift", {host.data(data)}, {{"learnable", true}}, "spread");
  const Layer cost = host.layer("max", {spread}, {}, "top");
  const Layer error = host.layer("should_be_false", {cost}, {}, "cost");
  MachineOptions options;
  options.training = true;
  options.max_samples = 1;
  const Machine machine = host.machine(host.parameters({error}, 1), {error}, options);
  const float x[] = {0, 0, -1, 0};
  machine.forward({{"x", {TN_F32, {1, 4}, x}}});
  machine.backward();  // the derivative of softplus at 0 is 1/2, in three shares
  const auto* shares = static_cast<const float*>(machine.gradient("spread.shift").data);
  for (const int i : {0, 1, 3}) EXPECT_NEAR(shares[i], 0.5 / 3, 1e-7);
  EXPECT_EQ(shares[2], 0);
}

TEST(Reductions, WhatIsNotOfferedIsSaid) {
  Host host({1, {tenon_tests::plugin_folder()}, nullptr, {}});
  DataOptions data;
  data.name = "x", data.dtype = TN_F32, data.shape = {3, 4};
  const Layer x = host.data(data);
  const auto message = [&](const Attributes& attributes, tn_status code) -> std::string {
    try {
      (void)host.layer("sum", {x}, attributes, "bad");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      return error.what();
    }
    return "no error";
  };
  EXPECT_NE(message({{"axis", 0}}, TN_UNSUPPORTED).find("axis 0, the samples"), std::string::npos);
  EXPECT_NE(message({{"axis", -3}}, TN_UNSUPPORTED).find("axis 0, the samples"), std::string::npos);
  EXPECT_NE(message({{"axis", 3}}, TN_INVALID).find("no axis 3"), std::string::npos);
  EXPECT_NE(message({{"axis", -4}}, TN_INVALID).find("[samples, 3, 4]"), std::string::npos);
  EXPECT_NE(message({{"axes", Shape{1, 0}}}, TN_UNSUPPORTED).find("axis 0, the samples"), std::string::npos);
  EXPECT_NE(message({{"axes", Shape{1, 3}}}, TN_INVALID).find("no axis 3"), std::string::npos);
  EXPECT_NE(message({{"axes", Shape{}}}, TN_INVALID).find("is empty"), std::string::npos);
  EXPECT_NE(message({{"axes", Shape{1, -2}}}, TN_INVALID).find("names a dimension twice"), std::string::npos);
  EXPECT_NE(message({{"axes", Shape{1}}, {"axis", 1}}, TN_INVALID).find("cannot be given with \"axis\""),
            std::string::npos);
}

}  // namespace
}  // namespace tenon_tests

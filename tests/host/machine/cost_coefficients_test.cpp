// Coefficients of costs, and costs of any value. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <tenon/tenon.hpp>

#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using testing::HasSubstr;

constexpr float kX[] = {1, -2, 3, 0.5F}, kLabel[] = {0.25F, 4};

// x [2] -> fc "y" [1], and costs of y.
class CostCoefficients : public testing::Test {
 protected:
  CostCoefficients() : host_({1, {plugin_folder()}, nullptr, {}}) {
    DataOptions x, label;
    x.name = "x", x.shape = {2};
    label.name = "label", label.shape = {1};
    y_ = host_.layer("fc", {host_.data(x)}, {{"size", 1}}, "y");
    label_ = host_.data(label);
  }
  Layer error(const Attributes& attributes, const std::string& name) {
    return host_.layer("square_error", {y_, label_}, attributes, name);
  }
  Layer sum(const Attributes& attributes, const std::string& name) {
    return host_.layer("sum_cost", {y_}, attributes, name);
  }
  struct Result {
    double cost;
    std::vector<double> gradient;  // of y.weight
  };
  Result of(const Layers& costs, tn_dtype compute = TN_F64, bool labelled = true) {
    const Parameters parameters = host_.parameters(costs, 7);
    MachineOptions options;
    options.max_samples = 2;
    options.training = true;
    options.compute = compute;
    const Machine machine = host_.machine(parameters, costs, options);
    std::vector<Feed> feeds = {{"x", {TN_F32, {2, 2}, kX}}};
    if (labelled) feeds.push_back({"label", {TN_F32, {2, 1}, kLabel}});
    machine.forward(feeds);
    machine.backward();
    const Array gradient = machine.gradient("y.weight");
    std::vector<double> values;
    for (int i = 0; i < 2; ++i)
      values.push_back(compute == TN_F64 ? static_cast<const double*>(gradient.data)[i]
                                         : static_cast<double>(static_cast<const float*>(gradient.data)[i]));
    return {machine.cost(), values};
  }
  std::string refusal(const std::function<void()>& work) {
    try {
      work();
    } catch (const Error& error) {
      EXPECT_EQ(error.subject(), "coefficient");
      return error.what();
    }
    return "nothing was refused";
  }

  Host host_;
  Layer y_, label_;
};

TEST_F(CostCoefficients, ScaleCostAndGradient) {
  const Result one = of({error({}, "error")});
  EXPECT_NE(one.cost, 0);
  for (const double factor : {0.5, -2.0, 0.0}) {
    const Result scaled = of({error({{"coefficient", factor}}, "error")});
    EXPECT_EQ(scaled.cost, factor * one.cost);
    for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(scaled.gradient[i], factor * one.gradient[i], 1e-14);
  }
  const Result tenth = of({error({{"coefficient", 0.1}}, "error")}, TN_F32);
  EXPECT_NEAR(tenth.cost, 0.1 * one.cost, 1e-6 * std::abs(one.cost));
}

TEST_F(CostCoefficients, CostsAreAdded) {
  const Result first = of({error({}, "error")}), second = of({sum({}, "sum")}, TN_F64, false);
  const Result both = of({error({{"coefficient", 0.25}}, "error"), sum({{"coefficient", 3}}, "sum")});
  EXPECT_NEAR(both.cost, 0.25 * first.cost + 3 * second.cost, 1e-12);
  for (size_t i = 0; i < 2; ++i)
    EXPECT_NEAR(both.gradient[i], 0.25 * first.gradient[i] + 3 * second.gradient[i], 1e-12);
}

// A cost that expands to another one.
TEST_F(CostCoefficients, OfAnExpandedCost) {
  DataOptions classes;
  classes.name = "label2", classes.dtype = TN_I64;
  const Layer prediction = host_.layer("softmax", {y_}, {{"size", 3}}, "p");
  const auto cost = [&](const Attributes& attributes) {
    const Layer made = host_.layer("cross_entropy", {prediction, host_.data(classes)}, attributes, "error");
    const Parameters parameters = host_.parameters({made}, 7);
    MachineOptions options;
    options.max_samples = 2;
    options.training = true;
    const Machine machine = host_.machine(parameters, {made}, options);
    const int64_t labels[] = {0, 2};
    machine.forward({{"x", {TN_F32, {2, 2}, kX}}, {"label2", {TN_I64, {2}, labels}}});
    return machine.cost();
  };
  EXPECT_FLOAT_EQ(static_cast<float>(cost({{"coefficient", 4}})), static_cast<float>(4 * cost({})));
}

TEST_F(CostCoefficients, BelongToCostsAndAreFinite) {
  EXPECT_THAT(refusal([&] {
                (void)host_.layer("relu", {y_}, {{"coefficient", 2}}, "r");
              }),
              HasSubstr("attribute \"coefficient\" needs a cost"));
  EXPECT_THAT(refusal([&] {
                (void)sum({{"coefficient", std::numeric_limits<double>::infinity()}}, "s");
              }),
              HasSubstr("is not finite"));
  EXPECT_THAT(refusal([&] { (void)sum({{"coefficient", "much"}}, "s"); }), HasSubstr("expected a number"));
}

}  // namespace

}  // namespace tenon_tests

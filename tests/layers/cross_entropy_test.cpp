// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/layer_check.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

// The largest logit of each sample: the size of the terms that cancel if the right class is certain.
std::vector<double> largest_logits(const FormulaArguments& a, size_t classes) {
  std::vector<double> largest(static_cast<size_t>(a.samples));
  for (size_t i = 0; i < a.inputs[0].size(); ++i)
    largest[i / classes] = std::max(largest[i / classes], std::abs(a.inputs[0][i]));
  return largest;
}

LayerCase cross_entropy(bool from_logits, int64_t classes) {
  LayerCase layer;
  layer.type = "cross_entropy";
  layer.attributes = {{"from_logits", from_logits}};
  layer.inputs = {{{classes}, 0, from_logits ? -5.0 : 0.1, from_logits ? 5.0 : 0.9}, {{}, classes}};
  layer.cost = true;
  layer.formula = [=](const FormulaArguments& a) {
    const auto n = static_cast<size_t>(classes);
    std::vector<double> cost(static_cast<size_t>(a.samples));
    for (size_t i = 0; i < cost.size(); ++i) {
      const double* x = a.inputs[0].data() + i * n;
      const auto label = static_cast<size_t>(a.inputs[1][i]);
      const double most = *std::max_element(x, x + n);
      double sum = 0;
      for (size_t k = 0; k < n; ++k) sum += std::exp(x[k] - most);
      cost[i] = from_logits ? std::log(sum) + most - x[label] : -std::log(x[label]);
    }
    return cost;
  };
  layer.inputs[0].limited = !from_logits;
  if (from_logits)
    layer.rounded = [=](const FormulaArguments& a) { return largest_logits(a, static_cast<size_t>(classes)); };
  return layer;
}

// The label is a row of numbers above 0, which need not add up to 1.
LayerCase of_distributions(bool from_logits, double range) {
  LayerCase layer = cross_entropy(from_logits, 5);
  layer.inputs = {{{5}, 0, from_logits ? -range : 0.1, from_logits ? range : 0.9}, {{5}, 0, 0, 1}};
  layer.gradient_rounded = range;  // the gradient of the label is log(sum) - x
  layer.inputs[0].limited = !from_logits;
  layer.formula = [=](const FormulaArguments& a) {
    std::vector<double> cost(static_cast<size_t>(a.samples), 0.0);
    for (size_t i = 0; i < cost.size(); ++i) {
      const double* x = a.inputs[0].data() + i * 5;
      const double m = from_logits ? *std::max_element(x, x + 5) : 0;
      double sum = 0;
      for (size_t k = 0; k < 5; ++k) sum += std::exp(x[k] - m);
      for (size_t k = 0; k < 5; ++k)
        cost[i] -= a.inputs[1][i * 5 + k] * (from_logits ? x[k] - m - std::log(sum) : std::log(x[k]));
    }
    return cost;
  };
  return layer;
}

TEST(CrossEntropy, OfProbabilities) { EXPECT_GT(check_layer(cross_entropy(false, 10)), 0); }
TEST(CrossEntropy, FromLogits) { EXPECT_GT(check_layer(cross_entropy(true, 10)), 0); }
TEST(CrossEntropy, OfDistributions) { EXPECT_GT(check_layer(of_distributions(false, 0)), 0); }
TEST(CrossEntropy, OfDistributionsFromLogits) {
  EXPECT_GT(check_layer(of_distributions(true, 5)), 0);
  EXPECT_GT(check_layer(of_distributions(true, 500)), 0);
}
TEST(CrossEntropy, OnRowsOfSequences) {
  for (const bool from_logits : {false, true}) {
    EXPECT_GT(check_layer(on_rows(cross_entropy(from_logits, 4))), 0);
    EXPECT_GT(check_layer(on_rows(cross_entropy(from_logits, 4), 2)), 0);
  }
  EXPECT_GT(check_long_sequences(on_rows(cross_entropy(true, 4))), 0);
  EXPECT_GT(check_layer(on_rows(of_distributions(true, 5))), 0);
}
TEST(CrossEntropy, ManyClasses) {
  LayerCase layer = cross_entropy(true, 1000);
  layer.samples = {1, 5};  // every element costs two evaluations of the formula
  EXPECT_GT(check_layer(layer), 0);
}

class CrossEntropyOnAHost : public testing::Test {
 protected:
  Layer data(const std::string& name, const std::vector<int64_t>& shape, tn_dtype dtype) {
    DataOptions options;
    options.name = name, options.dtype = dtype, options.shape = shape;
    return host_.data(options);
  }
  Host host_{HostOptions{1, {tenon_tests::plugin_folder()}, nullptr, {}}};
};

// A label distribution with all probability in one class costs as much as that class as label, also if the prediction
// of that class is 0.
TEST_F(CrossEntropyOnAHost, CertainDistributionIsALabel) {
  const Layer p = data("p", {3}, TN_F32);
  const Layer by_label = host_.layer("cross_entropy", {p, data("label", {}, TN_I32)}, {}, "by_label");
  const Layer by_share = host_.layer("cross_entropy", {p, data("share", {3}, TN_F32)}, {}, "by_share");
  MachineOptions options;
  options.training = false;
  options.max_samples = 2;
  const Machine machine = host_.machine(host_.parameters({by_label, by_share}, 1), {by_label, by_share}, options);
  const float probabilities[] = {0.25F, 0.75F, 0, 0, 1, 0}, shares[] = {0, 1, 0, 1, 0, 0};
  const int32_t labels[] = {1, 0};
  machine.forward(
      {{"p", {TN_F32, {2, 3}, probabilities}}, {"label", {TN_I32, {2}, labels}}, {"share", {TN_F32, {2, 3}, shares}}});
  for (const int i : {0, 1})
    EXPECT_EQ(static_cast<const float*>(machine.output(by_label).data)[i],
              static_cast<const float*>(machine.output(by_share).data)[i]);
  EXPECT_NEAR(static_cast<const float*>(machine.output(by_label).data)[1], 30 * std::log(10.0), 1e-3);
}

TEST_F(CrossEntropyOnAHost, NamesBothShapes) {
  try {
    (void)host_.layer("cross_entropy", {data("p", {3}, TN_F32), data("q", {4}, TN_F32)}, {}, "bad");
    FAIL();
  } catch (const Error& error) {
    const std::string said = error.what();
    EXPECT_EQ(error.code(), TN_INVALID);
    EXPECT_NE(said.find("label"), std::string::npos) << said;
    EXPECT_NE(said.find("[samples, 3]"), std::string::npos) << said;
    EXPECT_NE(said.find("[samples, 4]"), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace tenon_tests

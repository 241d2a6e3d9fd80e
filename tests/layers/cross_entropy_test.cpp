// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
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
  layer.inputs[1].limited = true;
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

struct Positions {
  std::vector<int64_t> shape = {};  // of the positions of a sample
  bool weighted = false;
  std::vector<double> class_weights = {};
  double smoothing = 0;
  int64_t ignored = -1;  // a class, or a label that does not occur; -1: none
  bool by_weights = false;
};

// Logits of 4 classes at each position, labels, weights.
LayerCase of_positions(const Positions& p) {
  LayerCase layer;
  layer.type = "cross_entropy";
  layer.attributes = {{"from_logits", true}, {"label_smoothing", p.smoothing}};
  if (!p.class_weights.empty()) layer.attributes.push_back({"class_weights", p.class_weights});
  if (p.ignored != -1) layer.attributes.push_back({"ignore_index", p.ignored});
  if (p.by_weights) layer.attributes.push_back({"average", "weights"});
  std::vector<int64_t> shape = p.shape;
  shape.push_back(4);
  layer.inputs = {{shape, 0, -5, 5}, {p.shape, 4}};
  if (p.weighted) layer.inputs.push_back({p.shape, 0, 0.5, 2});
  layer.cost = true;
  layer.gradient_rounded = 5;
  layer.formula = [=](const FormulaArguments& a) {
    const size_t all = a.inputs[1].size(), samples = static_cast<size_t>(a.samples);
    std::vector<double> cost(samples);
    double total = 0;
    for (size_t i = 0; i < all; ++i) {
      const double* x = a.inputs[0].data() + i * 4;
      const auto label = static_cast<size_t>(a.inputs[1][i]);
      if (static_cast<int64_t>(label) == p.ignored) continue;
      const double most = *std::max_element(x, x + 4);
      double sum = 0;
      for (size_t k = 0; k < 4; ++k) sum += std::exp(x[k] - most);
      const double weight = p.weighted ? a.inputs[2][i] : 1;
      const auto of_class = [&](size_t k) { return p.class_weights.empty() ? 1 : p.class_weights[k]; };
      for (size_t k = 0; k < 4; ++k) {
        const double share = (k == label ? 1 - p.smoothing : 0) + p.smoothing / 4;
        cost[i / (all / samples)] += weight * of_class(k) * share * (std::log(sum) + most - x[k]);
      }
      total += weight * of_class(label);
    }
    if (p.by_weights)
      for (double& value : cost) value *= total == 0 ? 0 : static_cast<double>(samples) / total;
    return cost;
  };
  layer.rounded = [=](const FormulaArguments& a) {
    std::vector<double> rounded(static_cast<size_t>(a.samples), 0.0);
    for (size_t i = 0; i < a.inputs[0].size(); ++i)
      rounded[i / (a.inputs[0].size() / rounded.size())] += 4 * std::abs(a.inputs[0][i]);
    return rounded;
  };
  return layer;
}

TEST(CrossEntropy, OfPositions) {
  EXPECT_GT(check_layer(of_positions({.shape = {3}})), 0);
  EXPECT_GT(check_layer(of_positions({.shape = {2, 3}, .weighted = true})), 0);
}
TEST(CrossEntropy, WithWeights) {
  EXPECT_GT(check_layer(of_positions({.weighted = true})), 0);
  EXPECT_GT(check_layer(of_positions({.class_weights = {1, 0.5, 2, 0.25}})), 0);
  EXPECT_GT(check_layer(of_positions({.shape = {3}, .weighted = true, .class_weights = {1, 0.5, 2, 3}})), 0);
  EXPECT_GT(check_layer(on_rows(of_positions({.class_weights = {1, 0.5, 2, 0.25}}))), 0);
}
TEST(CrossEntropy, ChecksLabelsBesideNegativeOnes) {
  EXPECT_GT(check_layer(of_positions({.shape = {3}, .weighted = true, .ignored = -100})), 0);
  EXPECT_GT(check_layer(on_rows(of_positions({.ignored = -100}))), 0);
}
TEST(CrossEntropy, SmoothsAndIgnoresLabels) {
  EXPECT_GT(check_layer(of_positions({.smoothing = 0.1})), 0);
  EXPECT_GT(check_layer(of_positions({.class_weights = {1, 0.5, 2, 0.25}, .smoothing = 0.3})), 0);
  EXPECT_GT(check_layer(of_positions({.ignored = 2})), 0);
  EXPECT_GT(check_layer(of_positions({.shape = {3}, .smoothing = 0.1, .ignored = 0})), 0);
}
TEST(CrossEntropy, DividesByTheWeights) {
  LayerCase layer = of_positions({.shape = {3}, .weighted = true, .class_weights = {1, 0.5, 2, 3}, .by_weights = true});
  layer.couples_samples = true;
  layer.inputs[2].limited = true;  // a sum of tiny weights as a divisor loses digits of their gradients
  EXPECT_GT(check_layer(layer), 0);
  layer = of_positions({.ignored = 1, .by_weights = true});
  layer.couples_samples = true;
  EXPECT_GT(check_layer(layer), 0);
}

// Negative labels are ignored, or end the step; a minibatch of ignored ones costs nothing.
TEST(CrossEntropy, IgnoresNegativeLabels) {
  Host host({1, {tenon_tests::plugin_folder()}, nullptr, {}});
  DataOptions x, label;
  x.name = "x", x.dtype = TN_F32, x.shape = {3};
  label.name = "label", label.dtype = TN_I64;
  const Layers inputs = {host.data(x), host.data(label)};
  const auto costs = [&](const std::vector<int64_t>& labels, const char* average) {
    const Attributes attributes = {{"from_logits", true}, {"ignore_index", int64_t{-100}}, {"average", average}};
    const Layer cost = host.layer("cross_entropy", inputs, attributes, "cost");
    MachineOptions options;
    options.max_samples = 2;
    const Machine machine = host.machine(host.parameters({cost}, 1), {cost}, options);
    const std::vector<float> logits(3 * labels.size(), 0.0F);
    const auto count = static_cast<int64_t>(labels.size());
    machine.forward({{"x", {TN_F32, {count, 3}, logits.data()}}, {"label", {TN_I64, {count}, labels.data()}}});
    const auto* const values = static_cast<const float*>(machine.output(cost).data);
    return std::vector<float>(values, values + labels.size());
  };
  const auto log3 = static_cast<float>(std::log(3.0));
  EXPECT_FLOAT_EQ(costs({1, -100}, "samples")[0], log3);
  EXPECT_EQ(costs({1, -100}, "samples")[1], 0);
  EXPECT_FLOAT_EQ(costs({1, -100}, "weights")[0], 2 * log3);
  EXPECT_EQ(costs({-100, -100}, "weights"), (std::vector<float>{0, 0}));
  EXPECT_EQ(costs({-100, -100}, "samples"), (std::vector<float>{0, 0}));
  for (const char* const average : {"samples", "weights"})
    for (const int64_t wrong : {int64_t{-1}, int64_t{3}, int64_t{-101}, int64_t{1} << 30}) {
      const std::string expected = "data layer \"label\": sample 1 of the minibatch is " + std::to_string(wrong) +
                                   "; layer \"cost\" needs 0 to 2, or -100";
      EXPECT_THAT([&] { costs({-100, wrong}, average); }, testing::ThrowsMessage<Error>(testing::HasSubstr(expected)));
    }
}

// The ignored label may be among the declared values of its data layer, and each layer that reads labels is asked.
TEST(CrossEntropy, IgnoresOneLabelBeyondTheClasses) {
  using testing::HasSubstr;
  using testing::ThrowsMessage;
  Host host({1, {tenon_tests::plugin_folder()}, nullptr, {}});
  DataOptions x, label;
  x.name = "x", x.shape = {3};
  label.name = "label", label.dtype = TN_U8, label.index_limit = 256;
  const Layers inputs = {host.data(x), host.data(label)};
  const auto made = [&](int64_t ignored) {
    return host.layer("cross_entropy", inputs, {{"from_logits", true}, {"ignore_index", ignored}}, "cost");
  };
  EXPECT_THAT([&] { (void)made(256); }, ThrowsMessage<Error>(HasSubstr("0 to 255; expected 0 to 2, or 256")));
  EXPECT_THAT([&] { (void)host.layer("cross_entropy", inputs, {}, "cost"); },
              ThrowsMessage<Error>(HasSubstr("0 to 255; expected 0 to 2")));
  const Layer cost = made(255);
  const Layer other = host.layer("accuracy", inputs, {{"ignore_index", 7}}, "other");
  const auto run = [&](const Layers& outputs, const std::vector<uint8_t>& labels) {
    MachineOptions options;
    options.max_samples = 2;
    const Machine machine = host.machine(host.parameters(outputs, 1), outputs, options);
    const float logits[6] = {};
    machine.forward({{"x", {TN_F32, {2, 3}, logits}}, {"label", {TN_U8, {2}, labels.data()}}});
    return machine.cost();
  };
  EXPECT_NEAR(run({cost}, {1, 255}), std::log(3.0) / 2, 1e-6);
  EXPECT_THAT(
      [&] {
        run({cost}, {1, 7});
      },
      ThrowsMessage<Error>(HasSubstr("sample 1 of the minibatch is 7; layer \"cost\" needs 0 to 2, or 255")));
  EXPECT_THAT(
      [&] {
        run({cost, other}, {255, 0});
      },
      ThrowsMessage<Error>(HasSubstr("layer \"other\" needs 0 to 2, or 7")));
  EXPECT_THAT(
      [&] {
        run({other, cost}, {0, 7});
      },
      ThrowsMessage<Error>(HasSubstr("layer \"cost\" needs 0 to 2, or 255")));
  EXPECT_NEAR(run({cost, other}, {2, 0}), std::log(3.0), 1e-6);
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

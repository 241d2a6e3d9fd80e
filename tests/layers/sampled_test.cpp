// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/philox.h"
#include "tests/support/layer_check.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon::core;

namespace {

using Values = std::vector<double>;
using Shape = std::vector<int64_t>;

double softplus(double z) { return z > 0 ? z + std::log1p(std::exp(-z)) : std::log1p(std::exp(z)); }

// Element `element` of draw 0 of a machine with seed 0 before its first update, as tenon/program.h defines it.
double draw(uint64_t element) {
  const Philox::Block block = Philox(0, 0).block(element / 4);
  return static_cast<double>(block[element % 4] >> 8U) * 0x1p-24;
}

// weight[row] . x + bias[row] of one sample.
double score(const FormulaArguments& a, size_t sample, size_t row) {
  const size_t depth = a.inputs[0].size() / static_cast<size_t>(a.samples);
  double sum = a.parameters.count("bias") != 0 ? a.parameters.at("bias")[row] : 0;
  for (size_t k = 0; k < depth; ++k)
    sum += a.inputs[0][sample * depth + k] * a.parameters.at("weight")[row * depth + k];
  return sum;
}

// ---- nce

double probability(bool uniform, int64_t classes, size_t c) {
  const auto n = static_cast<double>(classes), at = static_cast<double>(c);
  return uniform ? 1 / n : std::log((at + 2) / (at + 1)) / std::log(n + 1);
}
size_t drawn(bool uniform, int64_t classes, double u) {
  const auto n = static_cast<double>(classes);
  return std::min(static_cast<size_t>(uniform ? u * n : std::pow(n + 1, u) - 1), static_cast<size_t>(classes - 1));
}

LayerCase nce(bool uniform, int64_t classes, int64_t negative, bool bias, const Shape& shape = {5}) {
  LayerCase layer;
  layer.type = "nce";
  layer.gradient_rounded = 1;  // 1 - p of a class with p near 1
  layer.attributes = {{"num_classes", classes}, {"num_negative", negative}, {"bias", bias}};
  layer.attributes.push_back({"noise", uniform ? "uniform" : "log_uniform"});
  layer.inputs = {{shape}, {{}, classes}};
  layer.cost = true;
  layer.formula = [=](const FormulaArguments& a) {
    const auto k = static_cast<size_t>(negative);
    // The log-odds that class c comes from the model rather than from the k noise classes.
    const auto odds = [&](size_t s, size_t c) {
      return score(a, s, c) - std::log(static_cast<double>(negative) * probability(uniform, classes, c));
    };
    Values cost(static_cast<size_t>(a.samples));
    for (size_t s = 0; s < cost.size(); ++s) {
      cost[s] = softplus(-odds(s, static_cast<size_t>(a.inputs[1][s])));
      for (size_t j = 1; j <= k; ++j) cost[s] += softplus(odds(s, drawn(uniform, classes, draw(s * (1 + k) + j))));
    }
    return cost;
  };
  return layer;
}

TEST(Nce, UniformNoise) {
  EXPECT_GT(check_layer(nce(true, 11, 3, true)), 0);
  EXPECT_GT(check_layer(nce(true, 2, 1, false)), 0);
  EXPECT_GT(check_layer(nce(true, 101, 10, true, {2, 3})), 0);
}
TEST(Nce, LogUniformNoise) {
  EXPECT_GT(check_layer(nce(false, 11, 3, false)), 0);
  EXPECT_GT(check_layer(nce(false, 101, 10, true)), 0);
}

// The drawn classes have the stated distribution.
TEST(Nce, DrawsFromTheStatedDistribution) {
  constexpr size_t kDraws = 200000;
  for (const bool uniform : {true, false}) {
    Values share(7, 0.0);
    for (size_t i = 0; i < kDraws; ++i) share[drawn(uniform, 7, draw(i))] += 1.0 / kDraws;
    for (size_t c = 0; c < 7; ++c) {
      const double q = probability(uniform, 7, c);
      EXPECT_NEAR(share[c], q, 5 * std::sqrt(q / kDraws)) << c;
    }
  }
}

// ---- hierarchical sigmoid

// The cost of the decisions on the path to a label, walked up from the leaf.
double path_cost(const FormulaArguments& a, size_t sample, size_t label, int64_t classes) {
  double cost = 0;
  for (size_t node = label + static_cast<size_t>(classes); node > 1; node /= 2) {
    const double z = score(a, sample, node / 2 - 1);
    cost += softplus(node % 2 == 1 ? -z : z);
  }
  return cost;
}

LayerCase hierarchical(int64_t classes, bool bias, const Shape& shape = {5}) {
  LayerCase layer;
  layer.type = "hierarchical_sigmoid";
  layer.gradient_rounded = 1;  // 1 - p of a decision with p near 1
  layer.attributes = {{"num_classes", classes}, {"bias", bias}};
  layer.inputs = {{shape}, {{}, classes}};
  layer.cost = true;
  layer.formula = [classes](const FormulaArguments& a) {
    Values cost(static_cast<size_t>(a.samples));
    for (size_t s = 0; s < cost.size(); ++s) cost[s] = path_cost(a, s, static_cast<size_t>(a.inputs[1][s]), classes);
    return cost;
  };
  return layer;
}

TEST(HierarchicalSigmoid, FollowsThePath) {
  for (const int64_t classes : {2, 3, 4, 5, 8, 13, 64, 100})
    EXPECT_GT(check_layer(hierarchical(classes, classes % 2 == 0)), 0);
  EXPECT_GT(check_layer(hierarchical(9, true, {2, 2})), 0);
}

class SampledOnAHost : public testing::Test {
 protected:
  Layer data(const std::string& name, const Shape& shape, tn_dtype dtype) {
    DataOptions options;
    options.name = name, options.dtype = dtype, options.shape = shape;
    return host_.data(options);
  }
  // The cost of each label with the same input.
  Values costs(const std::string& type, const Attributes& attributes, const std::vector<int32_t>& labels) {
    const Layer layer = host_.layer(type, {data("x", {2}, TN_F32), data("label", {}, TN_I32)}, attributes, "cost");
    const Parameters parameters = host_.parameters({layer}, 3);
    MachineOptions options;
    options.max_samples = static_cast<int64_t>(labels.size());
    const Machine machine = host_.machine(parameters, {layer}, options);
    std::vector<float> x;
    for (size_t i = 0; i < labels.size(); ++i) x.insert(x.end(), {0.7F, -1.3F});
    const auto samples = static_cast<int64_t>(labels.size());
    machine.forward({{"x", {TN_F32, {samples, 2}, x.data()}}, {"label", {TN_I32, {samples}, labels.data()}}});
    const auto* y = static_cast<const float*>(machine.output(layer).data);
    return {y, y + labels.size()};
  }
  Host host_{HostOptions{1, {tenon_tests::plugin_folder()}, nullptr, {}}};
};

TEST_F(SampledOnAHost, ProbabilitiesOfATreeAddUpToOne) {
  for (const int64_t classes : {2, 3, 7, 100}) {
    std::vector<int32_t> labels;
    for (int32_t c = 0; c < classes; ++c) labels.push_back(c);
    double sum = 0;
    for (const double cost : costs("hierarchical_sigmoid", {{"num_classes", classes}}, labels)) sum += std::exp(-cost);
    EXPECT_NEAR(sum, 1, 1e-5) << classes;
  }
}

// With the largest number of classes every code is still exact: each decision with a weight near 0 costs log(2).
TEST_F(SampledOnAHost, TheLargestTree) {
  const int64_t classes = (int64_t{1} << 23) - 1;
  const Values cost = costs("hierarchical_sigmoid", {{"num_classes", classes}, {"bias", false}},
                            {0, 1, static_cast<int32_t>(classes - 1)});
  EXPECT_NEAR(cost[0], 22 * std::log(2.0), 0.1);
  EXPECT_NEAR(cost[1], 23 * std::log(2.0), 0.1);
  EXPECT_NEAR(cost[2], 23 * std::log(2.0), 0.1);
}

TEST_F(SampledOnAHost, NoiseIsDrawnAnewInEachStep) {
  const Layer layer =
      host_.layer("nce", {data("x", {2}, TN_F32), data("label", {}, TN_I32)}, {{"num_classes", 1000}}, "cost");
  const Parameters parameters = host_.parameters({layer}, 3);
  MachineOptions options;
  options.training = true;
  const Machine machine = host_.machine(parameters, {layer}, options);
  const float x[] = {0.7F, -1.3F};
  const int32_t label = 5;
  const auto cost = [&] {
    machine.forward({{"x", {TN_F32, {1, 2}, x}}, {"label", {TN_I32, {1}, &label}}});
    return machine.cost();
  };
  const double first = cost();
  EXPECT_EQ(cost(), first);
  machine.backward();
  host_.updater("sgd", {{"learning_rate", 0.0}}).update(machine);
  EXPECT_NE(cost(), first);
}

// Contexts with known distributions over the classes, which the model must learn.
class KnownDistributions : public SampledOnAHost {
 protected:
  static constexpr size_t kContexts = 3, kClasses = 7, kSamples = 700;

  // The probability of a class, a multiple of 1/28, so that a minibatch can hold exactly these shares.
  static double truth(size_t context, size_t c) { return static_cast<double>((c + 2 * context) % kClasses + 1) / 28; }
  // Trains the cost on minibatches that hold every context and class by its share.
  void train(const Layer& cost, const Parameters& parameters, int steps) const {
    std::vector<float> x;
    std::vector<int32_t> labels;
    for (size_t context = 0; context < kContexts; ++context)
      for (size_t c = 0; c < kClasses; ++c)
        for (size_t i = 0; i < static_cast<size_t>(std::lround(truth(context, c) * kSamples)); ++i) {
          for (size_t k = 0; k < kContexts; ++k) x.push_back(k == context ? 1 : 0);
          labels.push_back(static_cast<int32_t>(c));
        }
    const auto samples = static_cast<int64_t>(labels.size());
    MachineOptions options;
    options.max_samples = samples;
    options.training = true;
    const Machine machine = host_.machine(parameters, {cost}, options);
    const Updater updater = host_.updater("adam", {});
    for (int step = 0; step < steps; ++step) {
      updater.set_learning_rate(0.1 * (1 - static_cast<double>(step) / steps));
      machine.forward({{"x", {TN_F32, {samples, kContexts}, x.data()}}, {"label", {TN_I32, {samples}, labels.data()}}});
      machine.backward();
      updater.update(machine);
    }
  }
  Layer x_ = data("x", {kContexts}, TN_F32), label_ = data("label", {}, TN_I32);
  const std::vector<float> contexts_ = {1, 0, 0, 0, 1, 0, 0, 0, 1};
};

// Also checks that exp(score) is a probability without a sum over the classes, which is the purpose of nce.
TEST_F(KnownDistributions, NceLearnsThem) {
  for (const char* noise : {"uniform", "log_uniform"}) {
    const Layer cost = host_.layer(
        "nce", {x_, label_}, {{"num_classes", kClasses}, {"noise", noise}, {"parameter_name", "classes"}}, "cost");
    const Layer scores = host_.layer("mixed", {x_},
                                     {{"size", kClasses},
                                      {"projections", std::vector<std::string>{"transposed"}},
                                      {"bias", true},
                                      {"parameter_name", "classes"}},
                                     "scores");
    const Parameters parameters = host_.parameters({cost, scores}, 1);
    EXPECT_NEAR(static_cast<const float*>(parameters.get("classes.bias").data)[0], -std::log(7.0), 1e-6);
    train(cost, parameters, 300);
    MachineOptions options;
    options.max_samples = kContexts;
    const Machine machine = host_.machine(parameters, {scores}, options);
    machine.forward({{"x", {TN_F32, {kContexts, kContexts}, contexts_.data()}}});
    const auto* s = static_cast<const float*>(machine.output(scores).data);
    for (size_t context = 0; context < kContexts; ++context)
      for (size_t c = 0; c < kClasses; ++c)
        EXPECT_NEAR(std::exp(s[context * kClasses + c]), truth(context, c), 0.02)
            << noise << ' ' << context << ' ' << c;
  }
}

TEST_F(KnownDistributions, HierarchicalSigmoidLearnsThem) {
  const Layer cost = host_.layer("hierarchical_sigmoid", {x_, label_}, {{"num_classes", kClasses}}, "cost");
  const Parameters parameters = host_.parameters({cost}, 1);
  train(cost, parameters, 300);
  MachineOptions options;
  options.max_samples = kContexts;
  const Machine machine = host_.machine(parameters, {cost}, options);
  for (int32_t c = 0; c < static_cast<int32_t>(kClasses); ++c) {
    const std::vector<int32_t> labels(kContexts, c);
    machine.forward(
        {{"x", {TN_F32, {kContexts, kContexts}, contexts_.data()}}, {"label", {TN_I32, {kContexts}, labels.data()}}});
    const auto* y = static_cast<const float*>(machine.output(cost).data);
    for (size_t context = 0; context < kContexts; ++context)
      EXPECT_NEAR(std::exp(-y[context]), truth(context, static_cast<size_t>(c)), 0.01) << context << ' ' << c;
  }
}

TEST_F(SampledOnAHost, RefusalsNameThePort) {
  const Layer x = data("x", {2}, TN_F32), label = data("label", {}, TN_I32);
  for (const char* type : {"nce", "hierarchical_sigmoid"}) {
    const auto refusal = [&](const Layers& inputs, const Attributes& attributes) -> std::string {
      try {
        (void)host_.layer(type, inputs, attributes, "mine");
      } catch (const Error& error) {
        return error.what();
      }
      return "accepted";
    };
    const auto says = [](const std::string& said, const std::string& part) {
      EXPECT_NE(said.find(part), std::string::npos) << said;
    };
    says(refusal({x, data("two", {2}, TN_I32)}, {{"num_classes", 5}}), "label: must have one value for each row");
    says(refusal({x, data("two", {2}, TN_I32)}, {{"num_classes", 5}}), "[samples, 2]");
    says(refusal({x, x}, {{"num_classes", 5}}), "label");
    says(refusal({x, label}, {{"num_classes", 1}}), "num_classes");
    says(refusal({x, label}, {{"num_classes", int64_t{1} << 25}}), "num_classes");
    says(refusal({x, label}, {}), "num_classes");
    try {
      (void)costs(type, {{"num_classes", 5}}, {5});
      ADD_FAILURE() << type;
    } catch (const Error& error) {
      says(error.what(), "label");
      says(error.what(), "5");
    }
  }
}

}  // namespace
}  // namespace tenon_tests

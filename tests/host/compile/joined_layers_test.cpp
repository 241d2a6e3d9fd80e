// Outputs and gradients of layers whose calls the host fuses: a norm behind an activation, a product that is read
// twice, vectors that are pooled and also read otherwise. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/layer_bench.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using Values = std::vector<double>;
using Shape = std::vector<int64_t>;
constexpr int64_t kSamples = 3;

class JoinedLayers : public testing::Test {
 protected:
  Layer data(const std::string& name, const Shape& shape, tn_dtype dtype = TN_COMPUTE, int32_t storage = TN_DENSE) {
    DataOptions options;
    options.name = name;
    options.dtype = dtype;
    options.shape = shape;
    options.storage = storage;
    return host_.data(options);
  }
  void make(const Layers& outputs, bool training) {
    parameters_ = host_.parameters(outputs, 1);
    MachineOptions options;
    options.max_samples = kSamples;
    options.training = training;
    options.compute = TN_F64;
    machine_ = host_.machine(parameters_, outputs, options);
  }
  static double wave(size_t i) { return std::sin(1.7 * static_cast<double>(i) + 0.4); }
  static Values waves(size_t count, double size = 1) {
    Values values(count);
    for (size_t i = 0; i < count; ++i) values[i] = size * wave(i);
    return values;
  }
  // Sets a parameter to values that fp32, the type of the ParameterSet, represents exactly.
  void set(const std::string& name, const Shape& shape, const Values& values) {
    const std::vector<float> narrow(values.begin(), values.end());
    parameters_.set(name, {TN_F32, shape, narrow.data()});
  }
  static Values rounded(Values values) {
    for (double& value : values) value = static_cast<float>(value);
    return values;
  }

  // Compares the gradient of a parameter with difference quotients of the cost.
  template <typename Forward>
  void expect_slopes(const std::string& name, const Shape& shape, const Values& values, const Forward& forward) {
    forward();
    machine_.backward();
    const Values gradient = numbers_of(machine_.gradient(name));
    ASSERT_EQ(gradient.size(), values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      constexpr double kStep = 0x1p-12;
      Values moved = values;
      double costs[2];
      for (const int side : {0, 1}) {
        moved[i] = static_cast<float>(values[i] + (side == 0 ? -kStep : kStep));
        set(name, shape, moved);
        forward();
        costs[side] = machine_.cost();
      }
      const double both = static_cast<float>(values[i] + kStep) - static_cast<float>(values[i] - kStep);
      EXPECT_NEAR(gradient[i], (costs[1] - costs[0]) / both, 1e-5) << name << " element " << i;
    }
    set(name, shape, values);
  }

  static void expect_near(const Values& got, const Values& expected) {
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-12) << "element " << i;
  }

  Host host_{HostOptions{2, {tenon_tests::plugin_folder()}, nullptr, {}}};
  Parameters parameters_;
  Machine machine_;
};

// The grid of the activation is one row of all elements, that of the norm has rows of 5; fused, they have the latter.
TEST_F(JoinedLayers, NormBehindAnActivation) {
  for (const bool training : {false, true}) {
    const Layer x = data("x", {4}), target = data("target", {3, 5});
    const Layer wide = host_.layer("fc", {x}, {{"size", 15}, {"bias", false}}, "wide");
    const Layer active = host_.layer("tanh", {host_.layer("reshape", {wide}, {{"shape", Shape{3, 5}}}, "")}, {}, "");
    const Layer norm = host_.layer("layer_norm", {active}, {{"learnable", false}}, "norm");
    const Layer cost = host_.layer("square_error", {norm, target}, {}, "cost");
    make({cost, norm}, training);
    const Values inputs = waves(kSamples * 4), targets = waves(kSamples * 15), weights = rounded(waves(60, 0.7));
    set("wide.weight", {4, 15}, weights);
    const auto forward = [&] {
      machine_.forward(
          {{"x", {TN_F64, {kSamples, 4}, inputs.data()}}, {"target", {TN_F64, {kSamples, 3, 5}, targets.data()}}});
    };
    forward();
    Values expected(kSamples * 15, 0.0);
    for (size_t i = 0; i < expected.size(); ++i) {
      for (size_t k = 0; k < 4; ++k) expected[i] += inputs[i / 15 * 4 + k] * weights[k * 15 + i % 15];
      expected[i] = std::tanh(expected[i]);
    }
    for (size_t row = 0; row < expected.size(); row += 5) {
      double mean = 0, square = 0;
      for (size_t i = row; i < row + 5; ++i) mean += expected[i] / 5;
      for (size_t i = row; i < row + 5; ++i) square += (expected[i] - mean) * (expected[i] - mean) / 5;
      for (size_t i = row; i < row + 5; ++i) expected[i] = (expected[i] - mean) / std::sqrt(square + 1e-5);
    }
    expect_near(numbers_of(machine_.output(norm)), expected);
    if (training) expect_slopes("wide.weight", {4, 15}, weights, forward);
  }
}

// A layer reads a matrix product twice. The product is an output of the machine or not.
TEST_F(JoinedLayers, ProductReadTwice) {
  for (const bool kept : {false, true})
    for (const bool training : {false, true}) {
      const Layer x = data("x", {4}), target = data("target", {20});
      const Layer product = host_.layer("fc", {x}, {{"size", 20}, {"bias", false}}, "product");
      const Layer square = host_.layer("mul", {product, product}, {}, "square");
      const Layer cost = host_.layer("square_error", {square, target}, {}, "cost");
      make(kept ? Layers{cost, square, product} : Layers{cost, square}, training);
      const Values inputs = waves(kSamples * 4), targets = waves(kSamples * 20), weights = rounded(waves(80));
      set("product.weight", {4, 20}, weights);
      const auto forward = [&] {
        machine_.forward(
            {{"x", {TN_F64, {kSamples, 4}, inputs.data()}}, {"target", {TN_F64, {kSamples, 20}, targets.data()}}});
      };
      forward();
      Values expected(kSamples * 20, 0.0), squares;
      for (size_t i = 0; i < expected.size(); ++i) {
        for (size_t k = 0; k < 4; ++k) expected[i] += inputs[i / 20 * 4 + k] * weights[k * 20 + i % 20];
        squares.push_back(expected[i] * expected[i]);
      }
      expect_near(numbers_of(machine_.output(square)), squares);
      if (kept) expect_near(numbers_of(machine_.output(product)), expected);
      if (training) expect_slopes("product.weight", {4, 20}, weights, forward);
    }
}

// Vectors of words that are summed over each text. They are written to memory only if they are an output or another
// layer reads them.
TEST_F(JoinedLayers, VectorsThatArePooledAndRead) {
  enum { kAlone, kOutput, kReader };
  const int64_t offsets[] = {0, 2, 2, 5};
  const std::vector<int32_t> words{3, 1, 0, 3, 3};
  const Values table = rounded(waves(8)), targets = waves(kSamples * 2);
  Values vectors, sums(kSamples * 2, 0.0);
  for (size_t row = 0; row < words.size(); ++row)
    for (size_t k = 0; k < 2; ++k) {
      vectors.push_back(table[static_cast<size_t>(words[row]) * 2 + k]);
      sums[(row < 2 ? 0U : 2U) * 2 + k] += vectors.back();
    }
  for (const int use : {kAlone, kOutput, kReader})
    for (const bool training : {false, true}) {
      SCOPED_TRACE(testing::Message() << "use " << use << ", training " << training);
      const Layer ids = data("words", {}, TN_I32, TN_RAGGED), target = data("target", {2});
      const Layer vector = host_.layer("embedding", {ids}, {{"vocabulary", 4}, {"size", 2}}, "vector");
      const Layer sum = host_.layer("sequence_pool", {vector}, {{"kind", "sum"}}, "sum");
      const Layer other = host_.layer("sequence_pool", {host_.layer("tanh", {vector}, {}, "")}, {{"kind", "max"}}, "");
      const Layer all = use == kReader ? host_.layer("add", {other, sum}, {}, "") : sum;
      const Layer cost = host_.layer("square_error", {all, target}, {}, "cost");
      make(use == kOutput ? Layers{vector, sum, cost} : Layers{cost, sum}, training);
      set("vector.weight", {4, 2}, table);
      const auto forward = [&] {
        machine_.forward({{"words", Array::sequences(TN_I32, {5}, words.data(), kSamples, offsets)},
                          {"target", {TN_F64, {kSamples, 2}, targets.data()}}});
      };
      forward();
      expect_near(numbers_of(machine_.output(sum)), sums);
      if (use == kOutput) expect_near(numbers_of(machine_.output(vector)), vectors);
      if (training) expect_slopes("vector.weight", {4, 2}, table, forward);
      const nlohmann::json plan = nlohmann::json::parse(machine_.plan());
      const bool summed = std::any_of(plan["calls"].begin(), plan["calls"].end(), [](const nlohmann::json& call) {
        return call["call"] == "gather" && call["layers"].size() == 2;
      });
      EXPECT_EQ(summed, use == kAlone) << plan["calls"];
    }
}

}  // namespace
}  // namespace tenon_tests

// Buffers: values that are stored with the model and not trained. An update commits their new values.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/layer_check.h"
#include "tests/support/paths.h"
#include "tests/support/test_layers.h"

namespace tenon_tests {

using namespace tenon;

namespace {

constexpr double kRate = 0.25;

std::vector<double> mean_of(const std::vector<double>& values, size_t features) {
  std::vector<double> mean(features);
  const auto samples = static_cast<double>(values.size() / features);
  for (size_t i = 0; i < values.size(); ++i) mean[i % features] += values[i] / samples;
  return mean;
}

TEST(Buffers, PassTheHarness) {
  LayerCase layer;
  layer.type = "test_centre";
  layer.attributes = {{"rate", kRate}};
  layer.inputs = {{{5}}};
  layer.output_shape = {5};
  layer.couples_samples = true;
  layer.samples = {2, 7, 33};  // at least 2: a single sample is its own mean
  layer.formula = [](const FormulaArguments& a) {
    const std::vector<double> mean = a.training ? mean_of(a.inputs[0], 5) : a.buffers.at("mean");
    std::vector<double> output = a.inputs[0];
    for (size_t i = 0; i < output.size(); ++i) output[i] -= mean[i % 5];
    return output;
  };
  layer.buffers["mean"] = [](const FormulaArguments& a) {
    const std::vector<double> mean = mean_of(a.inputs[0], 5);
    std::vector<double> next = a.buffers.at("mean");
    for (size_t i = 0; i < next.size(); ++i) next[i] += kRate * (mean[i] - next[i]);
    return next;
  };
  EXPECT_GT(check_layer(layer), 0);
}

// Two models in one machine, "left" and "right", each with a buffer.
class TwoModels : public testing::Test {
 protected:
  TwoModels() : host_({1, {tenon_tests::plugin_folder()}, nullptr, {}}) {
    host_.add_plugin(&test_layers());
    DataOptions ids, weight;
    ids.name = "ids", ids.dtype = TN_I32;
    weight.name = "weight", weight.shape = {3};
    const Layer rows = host_.data(ids), weights = host_.data(weight);
    for (const std::string name : {"left", "right"}) {
      const Layer x = host_.layer("test_input", {rows}, {{"rows", 4}, {"shape", std::vector<int64_t>{3}}}, name + "_x");
      costs_.push_back(
          host_.layer("test_cost", {host_.layer("test_centre", {x}, {}, name), weights}, {}, name + "_cost"));
    }
    parameters_ = host_.parameters(costs_, 1);
    const std::vector<float> ones(12, 1);
    for (const char* name : {"left_x.values", "right_x.values"}) parameters_.set(name, {TN_F32, {4, 3}, ones.data()});
    MachineOptions options;
    options.max_samples = 4;
    options.training = true;
    machine_ = host_.machine(parameters_, costs_, options);
    updater_ = host_.updater("sgd", {{"learning_rate", 0.0}});
  }

  void step() const {
    const std::vector<int32_t> ids = {0, 1, 2, 3};
    const std::vector<float> weights(12, 1);
    machine_.forward({{"ids", {TN_I32, {4}, ids.data()}}, {"weight", {TN_F32, {4, 3}, weights.data()}}});
    machine_.backward();
  }
  [[nodiscard]] float mean(const std::string& model) const {
    return *static_cast<const float*>(parameters_.get(model + ".mean").data);
  }

  Host host_;
  Layers costs_;
  Parameters parameters_;
  Machine machine_;
  Updater updater_;
};

TEST_F(TwoModels, AnUpdateOfOneCommitsItsBuffersAlone) {
  step();
  updater_.update(machine_, costs_[1]);
  EXPECT_FLOAT_EQ(mean("left"), 0);
  EXPECT_FLOAT_EQ(mean("right"), 0.1F);
  step();
  updater_.update(machine_);
  EXPECT_FLOAT_EQ(mean("left"), 0.1F);
  EXPECT_FLOAT_EQ(mean("right"), 0.19F);
}

}  // namespace
}  // namespace tenon_tests

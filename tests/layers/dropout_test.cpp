// Dropout, as a layer and as the host attribute drop_rate. A formula cannot contain draws, so the mask is taken from
// the output and everything else is compared with it. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "tests/support/layer_check.h"
#include "tests/support/paths.h"
#include "tests/support/test_layers.h"

namespace tenon_tests {

using namespace tenon;

namespace {

constexpr int64_t kSamples = 101, kColumns = 37;
constexpr double kRate = 0.3;

std::vector<double> numbers(const Array& array) {
  std::vector<double> result(static_cast<size_t>(array.count()));
  for (size_t i = 0; i < result.size(); ++i)
    result[i] = array.dtype == TN_F64 ? static_cast<const double*>(array.data)[i]
                                      : static_cast<double>(static_cast<const float*>(array.data)[i]);
  return result;
}

// x (a parameter, all ones) -> the layer under test -> sum over all.
class Dropping {
 public:
  Dropping(const std::string& type, const Attributes& attributes, int threads, tn_dtype compute, bool training = true)
      : host_({threads, {tenon_tests::plugin_folder()}, nullptr, {}}) {
    host_.add_plugin(&test_layers());
    DataOptions ids, weight;
    ids.name = "ids", ids.dtype = TN_I32;
    weight.name = "weight", weight.dtype = TN_COMPUTE, weight.shape = {kColumns};
    const Layer x = host_.layer("test_input", {host_.data(ids)},
                                {{"rows", kSamples}, {"shape", std::vector<int64_t>{kColumns}}}, "x");
    layer_ = host_.layer(type, {x}, attributes, "dropped");
    cost_ = host_.layer("test_cost", {layer_, host_.data(weight)}, {}, "cost");
    parameters_ = host_.parameters({layer_, cost_}, 3);
    const std::vector<float> ones(kSamples * kColumns, 1);
    parameters_.set("x.values", {TN_F32, {kSamples, kColumns}, ones.data()});
    MachineOptions options;
    options.max_samples = kSamples;
    options.training = training;
    options.compute = compute;
    options.seed = 5;
    machine_ = host_.machine(parameters_, {layer_, cost_}, options);
    ids_.resize(kSamples);
    std::iota(ids_.begin(), ids_.end(), 0);
    narrow_.assign(kSamples * kColumns, 1);
    wide_.assign(kSamples * kColumns, 1);
    compute_ = compute;
  }

  std::vector<double> forward() {
    const void* weights = compute_ == TN_F64 ? static_cast<const void*>(wide_.data()) : narrow_.data();
    machine_.forward(
        {{"ids", {TN_I32, {kSamples}, ids_.data()}}, {"weight", {compute_, {kSamples, kColumns}, weights}}});
    return numbers(machine_.output(layer_));
  }
  std::vector<double> backward() {
    machine_.backward();
    return numbers(machine_.gradient("x.values"));
  }
  void update() { host_.updater("sgd", {{"learning_rate", 0.0}}).update(machine_); }

 private:
  Host host_;
  Layer layer_, cost_;
  Parameters parameters_;
  Machine machine_;
  std::vector<int32_t> ids_;
  std::vector<float> narrow_;
  std::vector<double> wide_;
  tn_dtype compute_ = TN_F32;
};

class Dropout : public testing::TestWithParam<bool> {
 protected:
  [[nodiscard]] static Dropping dropping(int threads, tn_dtype compute, bool training = true) {
    if (GetParam()) return {"dropout", {{"rate", kRate}}, threads, compute, training};
    return {"leaky_relu", {{"drop_rate", kRate}}, threads, compute, training};
  }
};

TEST_P(Dropout, KeepsTheMeanAndDropsTheRate) {
  const std::vector<double> y = dropping(2, TN_F64).forward();
  double sum = 0;
  int64_t dropped = 0;
  for (const double value : y) {
    if (value == 0)
      ++dropped;
    else
      EXPECT_NEAR(value, 1 / (1 - kRate), 1e-12);
    sum += value;
  }
  const auto n = static_cast<double>(y.size());
  const double deviation = std::sqrt(kRate * (1 - kRate) / n);
  EXPECT_NEAR(static_cast<double>(dropped) / n, kRate, 5 * deviation);
  EXPECT_NEAR(sum / n, 1, 5 * deviation / (1 - kRate));
}

TEST_P(Dropout, DropsTheSameInTheGradient) {
  Dropping d = dropping(2, TN_F64);
  const std::vector<double> y = d.forward();
  const std::vector<double> gradient = d.backward();
  ASSERT_EQ(gradient.size(), y.size());
  for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(gradient[i] * kSamples, y[i], 1e-12) << i;
}

TEST_P(Dropout, RepeatsWithinAStepAndChangesWithIt) {
  Dropping d = dropping(2, TN_F32);
  const std::vector<double> first = d.forward();
  EXPECT_EQ(d.forward(), first);
  d.backward();
  d.update();
  const std::vector<double> next = d.forward();
  int64_t equal = 0;
  for (size_t i = 0; i < next.size(); ++i) equal += (next[i] == 0) == (first[i] == 0) ? 1 : 0;
  const double expected = kRate * kRate + (1 - kRate) * (1 - kRate);
  const auto n = static_cast<double>(next.size());
  EXPECT_NEAR(static_cast<double>(equal) / n, expected, 5 * std::sqrt(expected * (1 - expected) / n));
}

TEST_P(Dropout, DrawsTheSameForAllThreadsAndTypes) {
  const std::vector<double> one = dropping(1, TN_F32).forward();
  for (const int threads : {2, 3, 8}) EXPECT_EQ(dropping(threads, TN_F32).forward(), one);
  const std::vector<double> wide = dropping(2, TN_F64).forward();
  for (size_t i = 0; i < one.size(); ++i) ASSERT_EQ(wide[i] == 0, one[i] == 0);
}

TEST_P(Dropout, DoesNothingOutsideTraining) {
  for (const double value : dropping(2, TN_F32, false).forward()) ASSERT_EQ(value, 1);
}

INSTANTIATE_TEST_SUITE_P(Forms, Dropout, testing::Bool(),
                         [](const auto& param) { return param.param ? "Layer" : "DropRate"; });

TEST(DropRate, AppliesAfterTheActivationAndToExpansions) {
  Host host({1, {tenon_tests::plugin_folder()}, nullptr, {}});
  DataOptions data;
  data.name = "x", data.dtype = TN_F32, data.shape = {4};
  const Layer x = host.data(data);
  host.add_plugin(&test_layers());
  DataOptions weight;
  weight.name = "weight", weight.dtype = TN_F32, weight.shape = {64};
  const Layer weights = host.data(weight);
  for (const Attributes& attributes : {Attributes{{"size", 64}, {"act", "sigmoid"}, {"drop_rate", 0.5}},
                                       Attributes{{"size", 64}, {"drop_rate", 0.5}}}) {
    const Layer layer = host.layer(attributes.size() == 3 ? "fc" : "softmax", {x}, attributes, "y");
    const Parameters parameters = host.parameters({layer}, 1);
    const Layer cost = host.layer("test_cost", {layer, weights}, {}, "cost");
    MachineOptions options;
    options.max_samples = 1;
    options.training = true;
    const Machine machine = host.machine(parameters, {layer, cost}, options);
    const float values[4] = {1, 2, 3, 4};
    const std::vector<float> ones(64, 1);
    machine.forward({{"x", {TN_F32, {1, 4}, values}}, {"weight", {TN_F32, {1, 64}, ones.data()}}});
    int64_t zeros = 0;
    for (const double value : numbers(machine.output(layer))) zeros += value == 0 ? 1 : 0;
    EXPECT_GT(zeros, 10);
    EXPECT_LT(zeros, 54);
  }
  EXPECT_THROW((void)host.layer("fc", {x}, {{"size", 2}, {"drop_rate", 1.0}}, "y"), Error);
}

// Whole channels of images of 2 x 2 positions and 3 channels are 0, others scaled; the gradient has the same mask.
TEST(SpatialDropout, DropsWholeChannels) {
  constexpr int64_t kPositions = 4, kChannels = 3;
  Host host({2, {tenon_tests::plugin_folder()}, nullptr, {}});
  DataOptions data;
  data.name = "x", data.dtype = TN_F32, data.shape = {2, kPositions / 2, kChannels};
  const Layer x = host.layer("scale_shift", {host.data(data)}, {{"learnable", true}}, "scaled");
  const Layer y = host.layer("spatial_dropout", {x}, {{"rate", kRate}}, "y");
  const Layer cost = host.layer("sum_cost", {y}, {}, "cost");
  const Parameters parameters = host.parameters({y, cost}, 1);
  const std::vector<float> ones(kSamples * kPositions * kChannels, 1);
  for (const bool training : {true, false}) {
    MachineOptions options;
    options.max_samples = kSamples;
    options.training = training;
    const Machine machine = host.machine(parameters, {y, cost}, options);
    machine.forward({{"x", {TN_F32, {kSamples, 2, kPositions / 2, kChannels}, ones.data()}}});
    const std::vector<double> values = numbers(machine.output(y));
    int64_t dropped = 0;
    for (int64_t i = 0; i < static_cast<int64_t>(values.size()); ++i) {
      const double first = values[static_cast<size_t>(i - i % (kPositions * kChannels) + i % kChannels)];
      ASSERT_EQ(values[static_cast<size_t>(i)], first) << i;
      if (first != 0) {
        ASSERT_NEAR(first, training ? 1 / (1 - kRate) : 1, 1e-6);
      }
      dropped += first == 0 ? 1 : 0;
    }
    const double share = static_cast<double>(dropped) / static_cast<double>(values.size());
    EXPECT_NEAR(share, training ? kRate : 0,
                training ? 5 * std::sqrt(kRate * (1 - kRate) / (kSamples * kChannels)) : 0);
    if (!training) continue;
    machine.backward();
    const double sum = std::accumulate(values.begin(), values.end(), 0.0);
    const std::vector<double> slopes = numbers(machine.gradient("scaled.shift"));
    EXPECT_NEAR(std::accumulate(slopes.begin(), slopes.end(), 0.0) * kSamples, sum, 1e-3);
  }
}
TEST(SpatialDropout, NeedsPositions) {
  Host host({1, {tenon_tests::plugin_folder()}, nullptr, {}});
  try {
    (void)host.layer("spatial_dropout", {host.data({"x", TN_F32, {3}})}, {}, "bad");
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("[samples, positions..., channels]"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tenon_tests

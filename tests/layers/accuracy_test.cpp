// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <tenon/tenon.hpp>

#include "tests/support/paths.h"
#include "tests/support/test_layers.h"

namespace tenon_tests {

using namespace tenon;

namespace {

class Accuracy : public testing::Test {
 protected:
  Accuracy() {
    DataOptions prediction;
    prediction.name = "prediction";
    prediction.shape = {3};
    DataOptions label;
    label.name = "label";
    label.dtype = TN_I64;
    const Layer metric = host_.layer("accuracy", {host_.data(prediction), host_.data(label)}, {}, "accuracy");
    MachineOptions options;
    options.max_samples = 100;
    machine_ = host_.machine(host_.parameters({metric}, 1), {metric}, options);
  }

  double measure(const std::vector<float>& values, const std::vector<int64_t>& labels) {
    const auto samples = static_cast<int64_t>(labels.size());
    machine_.forward(
        {{"prediction", {TN_F32, {samples, 3}, values.data()}}, {"label", {TN_I64, {samples}, labels.data()}}});
    const std::vector<Metric> metrics = machine_.metrics();
    EXPECT_EQ(metrics.size(), 1U);
    EXPECT_EQ(metrics.at(0).name, "accuracy");
    return metrics.at(0).value;
  }

  Host host_{HostOptions{2, {tenon_tests::plugin_folder()}, nullptr, {}}};
  Machine machine_;
};

TEST_F(Accuracy, CountsWhatIsRight) {
  EXPECT_EQ(measure({1, 2, 3}, {2}), 1);
  EXPECT_EQ(measure({1, 2, 3}, {1}), 0);
  EXPECT_EQ(measure({1, 2, 3, 3, 2, 1}, {2, 1}), 0.5);
}

TEST_F(Accuracy, FirstMaximumWins) {
  EXPECT_EQ(measure({2, 2, 1}, {0}), 1);
  EXPECT_EQ(measure({2, 2, 1}, {1}), 0);
  EXPECT_EQ(measure({-1, -1, -1, -1, -1, -1}, {0, 2}), 0.5);
}

TEST_F(Accuracy, NothingIsZero) { EXPECT_EQ(measure({}, {}), 0); }

TEST_F(Accuracy, ManySamples) {
  std::vector<float> values;
  std::vector<int64_t> labels;
  for (int i = 0; i < 99; ++i) {
    for (int k = 0; k < 3; ++k) values.push_back(k == i % 3 ? 1.0F : 0.0F);
    labels.push_back(i % 9 < 3 ? (i + 1) % 3 : i % 3);
  }
  EXPECT_NEAR(measure(values, labels), 66.0 / 99, 1e-12);
}

// Two positions in each sample, of which those with an ignored label do not count: a negative one, or a class.
TEST_F(Accuracy, OfPositionsWithoutIgnoredLabels) {
  DataOptions prediction, label;
  prediction.name = "prediction", prediction.shape = {2, 3};
  label.name = "label", label.dtype = TN_I64, label.shape = {2};
  const auto measure_without = [&](int64_t ignored, const std::vector<int64_t>& labels) {
    const Layer metric =
        host_.layer("accuracy", {host_.data(prediction), host_.data(label)}, {{"ignore_index", ignored}}, "positions");
    MachineOptions options;
    options.max_samples = 2;
    const Machine machine = host_.machine(host_.parameters({metric}, 1), {metric}, options);
    const float scores[] = {3, 2, 1, 1, 3, 2, 1, 2, 3, 3, 2, 1};  // 0, 1; 2, 0
    machine.forward({{"prediction", {TN_F32, {2, 2, 3}, scores}}, {"label", {TN_I64, {2, 2}, labels.data()}}});
    return machine.metrics().at(0).value;
  };
  EXPECT_EQ(measure_without(-100, {0, 1, 2, 1}), 0.75);
  EXPECT_EQ(measure_without(-100, {0, -100, 1, -100}), 0.5);
  EXPECT_EQ(measure_without(-100, {-100, -100, -100, -100}), 0);
  EXPECT_EQ(measure_without(1, {0, 1, 1, 2}), 0.5);
  EXPECT_EQ(measure_without(3, {0, 3, 3, 0}), 1);
  for (const int64_t wrong : {-1, 3}) EXPECT_THROW(measure_without(-100, {0, 1, wrong, 0}), Error);
}

TEST_F(Accuracy, LabelsAreChecked) {
  EXPECT_THROW(measure({1, 2, 3}, {3}), Error);
  EXPECT_THROW(measure({1, 2, 3}, {-1}), Error);
}

}  // namespace
}  // namespace tenon_tests

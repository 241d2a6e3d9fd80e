// Matrices of parameters that machines pack once, and again when they have changed. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <tenon/tenon.hpp>
#include <tenon/tenon_lease.hpp>
#include <tenon/tenon_predictor.hpp>
#include <vector>

#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

constexpr int64_t kInputs = 70, kHidden = 90, kSamples = 40;

// Words [kInputs] -> fc "h" -> rows, or one vector for each sample of x.
class PackedParameters : public testing::Test {
 protected:
  PackedParameters() : host_({2, {plugin_folder()}, nullptr, {}}) {
    DataOptions x;
    x.name = "x", x.shape = {kInputs};
    y_ = net(host_.data(x), "");
    DataOptions words;
    words.name = "words", words.shape = {kInputs}, words.storage = TN_RAGGED;
    rows_ = net(host_.data(words), "of_rows");
    parameters_ = host_.parameters({y_, rows_}, 3);
    for (int64_t i = 0; i < kSamples * kInputs; ++i)
      x_.push_back(static_cast<float>(std::sin(static_cast<double>(i) * 0.37)));
  }

  Layer net(const Layer& from, const std::string& prefix) {
    const Layer hidden = host_.layer("fc", {from}, {{"size", kHidden}, {"act", "tanh"}}, prefix + "h");
    return host_.layer("fc", {hidden}, {{"size", kInputs}}, prefix + "y");
  }
  [[nodiscard]] Machine machine(const Layer& of, bool training = false) const {
    MachineOptions options;
    options.max_samples = kSamples;
    options.training = training;
    return host_.machine(parameters_, {training ? host_.layer("sum_cost", {of}) : of, of}, options);
  }
  [[nodiscard]] std::vector<float> forward(const Machine& of) const {
    of.forward({{"x", {TN_F32, {kSamples, kInputs}, x_.data()}}});
    return values(of.output(y_));
  }
  // The outputs of sequences of `rows` rows.
  [[nodiscard]] std::vector<float> forward(const Machine& of, int64_t rows) const {
    const int64_t ends[] = {0, rows};
    std::vector<float> data(static_cast<size_t>(rows * kInputs));
    for (size_t i = 0; i < data.size(); ++i) data[i] = x_[i % x_.size()];
    of.forward({{"words", Array::sequences(TN_F32, {rows, kInputs}, data.data(), 1, ends)}});
    return values(of.output(rows_));
  }
  // A training machine packs nothing.
  [[nodiscard]] std::vector<float> expected() const { return forward(machine(y_, true)); }
  void change(float by) const {
    const Array stored = parameters_.get("h.weight");
    std::vector<float> values(static_cast<const float*>(stored.data),
                              static_cast<const float*>(stored.data) + stored.count());
    for (float& each : values) each += by;
    parameters_.set("h.weight", {TN_F32, stored.shape, values.data()});
  }
  static std::vector<float> values(const Array& array) {
    const auto* const data = static_cast<const float*>(array.data);
    return {data, data + array.count()};
  }

  Host host_;
  Layer y_, rows_;
  Parameters parameters_;
  std::vector<float> x_;
};

TEST_F(PackedParameters, AreStatedByThePlan) {
  const auto packs = [](const Machine& of) {
    const auto calls = nlohmann::json::parse(of.plan()).at("calls");
    return std::count_if(calls.begin(), calls.end(),
                         [](const nlohmann::json& call) { return call.value("once", false); });
  };
  EXPECT_EQ(packs(machine(y_)), 2);
  EXPECT_EQ(packs(machine(y_, true)), 0);
}

TEST_F(PackedParameters, GiveTheBitsOfTheOthers) {
  const Machine packed = machine(y_);
  for (int round = 0; round < 2; ++round) EXPECT_EQ(forward(packed), expected());
}

TEST_F(PackedParameters, FollowEveryChange) {
  const Machine packed = machine(y_);
  std::vector<float> before = forward(packed);
  for (int round = 0; round < 3; ++round) {
    change(0.01F);
    EXPECT_NE(forward(packed), before);
    before = forward(packed);
    EXPECT_EQ(before, expected());
  }
}

TEST_F(PackedParameters, FollowAWritingLease) {
  const Machine packed = machine(y_);
  std::vector<float> before = forward(packed);
  const Lease lease(parameters_, "h.weight", TN_LEASE_WRITE);
  auto* const values = static_cast<float*>(const_cast<void*>(lease.values().data));
  for (int round = 0; round < 2; ++round) {
    values[5] += 1;  // no call tells the host of it
    EXPECT_NE(forward(packed), before);
    before = forward(packed);
    EXPECT_EQ(before, expected());
  }
}

TEST_F(PackedParameters, FollowTraining) {
  const Machine packed = machine(y_), trained = machine(y_, true);
  const Updater updater = host_.updater("sgd", {{"learning_rate", 0.01}});
  std::vector<float> before = forward(packed);
  for (int round = 0; round < 2; ++round) {
    static_cast<void>(forward(trained));
    trained.backward();
    updater.update(trained);
    EXPECT_NE(forward(packed), before);
    before = forward(packed);
    EXPECT_EQ(before, expected());
  }
}

TEST_F(PackedParameters, ArePackedAgainByAMachineThatGrew) {
  const Machine packed = machine(rows_), other = machine(rows_, true);
  for (const int64_t rows : {7, 5000, 9}) EXPECT_EQ(forward(packed, rows), forward(other, rows)) << rows;
}

TEST_F(PackedParameters, FollowTheRefreshOfAPredictor) {
  PredictorOptions options;
  options.max_samples = kSamples;
  const Predictor predictor(parameters_, {y_}, options);
  const auto predict = [&] {
    std::vector<float> found;
    predictor.predict({{"x", {TN_F32, {kSamples, kInputs}, x_.data()}}},
                      [&](const std::vector<Array>& outputs) { found = values(outputs[0]); });
    return found;
  };
  for (int round = 0; round < 3; ++round) {
    const std::vector<float> before = predict();
    EXPECT_EQ(before, expected());
    change(0.02F);
    EXPECT_EQ(predict(), before);
    predictor.refresh(parameters_);
  }
}

}  // namespace

}  // namespace tenon_tests

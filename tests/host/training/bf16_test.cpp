// Trainings with products in bfloat16: what is rounded, and the steps that are skipped.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tenon/tenon_updater.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <tenon/tenon.hpp>
#include <vector>

#include "tests/support/far.h"
#include "tests/support/far_models.h"

namespace tenon_tests {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

struct Model {
  explicit Model(const Host& host) {
    const Layer x = host.data(floats("x", {16}));
    hidden = host.layer("batch_norm", {host.layer("fc", {x}, {{"size", 24}}, "fc")}, {}, "norm");
    score = host.layer("fc", {hidden}, {{"size", 3}}, "score");
    cost = host.layer("square_error", {score, host.data(floats("y", {3}))}, {}, "cost");
  }
  Layer hidden, score, cost;
};

std::vector<float> numbers(int64_t count, float seed) {
  std::vector<float> result;
  for (int64_t i = 0; i < count; ++i) result.push_back(std::sin(seed + 0.37F * static_cast<float>(i)));
  return result;
}

class Bf16 : public testing::TestWithParam<const char*> {
 protected:
  Machine machine(const Parameters& parameters, tn_dtype compute) {
    MachineOptions options;
    options.max_samples = 8, options.training = true, options.device = GetParam(), options.compute = compute;
    return host_->machine(parameters, {model_.cost, model_.score}, options);
  }
  // One step; with `broken` the last number of y is infinite.
  void step(const Machine& machine, const Updater& updater, float seed, bool broken = false) {
    const std::vector<float> x = numbers(8 * 16, seed);
    std::vector<float> y = numbers(8 * 3, seed + 1);
    if (broken) y.back() = kInf;
    machine.forward({{"x", {TN_F32, {8, 16}, x.data()}}, {"y", {TN_F32, {8, 3}, y.data()}}});
    machine.backward();
    updater.update(machine);
  }
  [[nodiscard]] uint64_t count(decltype(&tn_updater_skipped) of, const Updater& updater,
                               const Parameters& parameters) const {
    uint64_t result = 0;
    EXPECT_EQ(of(host_->get(), updater.handle(), parameters.handle(), &result, nullptr), TN_OK);
    return result;
  }

  const FarHost host_;
  const Model model_{*host_};
};

TEST_P(Bf16, ProductsAreRoundedAndNothingElse) {
  std::vector<std::vector<float>> scores;
  for (const tn_dtype compute : {TN_F32, TN_BF16, TN_TF32}) {
    const Parameters parameters = host_->parameters({model_.cost}, 1);
    const Machine made = machine(parameters, compute);
    step(made, host_->updater("sgd", {{"learning_rate", 0.1}, {"clip_norm", 1.0}}), 1);
    const Array values = made.output(model_.score);
    EXPECT_EQ(values.dtype, TN_F32);
    const auto* const first = static_cast<const float*>(values.data);
    scores.emplace_back(first, first + 24);
  }
  EXPECT_EQ(scores[0], scores[2]);  // TF32 is for devices that have it
  double most = 0, least = 1;
  for (size_t i = 0; i < 24; ++i) {
    const double difference = std::abs(scores[0][i] - scores[1][i]);
    most = std::max(most, difference), least = std::min(least, difference);
  }
  EXPECT_GT(most, 1e-5);
  EXPECT_LT(most, 0.05);
}

TEST_P(Bf16, AStepWithoutFiniteGradientsChangesNothing) {
  for (const bool clips : {false, true}) {
    const Parameters parameters = host_->parameters({model_.cost}, 1);
    const Machine made = machine(parameters, TN_BF16);
    Attributes attributes = {{"learning_rate", 0.01}};
    if (clips) attributes.emplace_back("clip_norm", 1.0);
    const Updater updater = host_->updater("adam", attributes);
    step(made, updater, 1);
    EXPECT_EQ(count(&tn_updater_skipped, updater, parameters), 0U);
    Bytes before, after;
    add_parameters(before, parameters);
    step(made, updater, 2, true);
    add_parameters(after, parameters);
    EXPECT_EQ(before, after);  // the buffers of batch_norm included
    EXPECT_EQ(count(&tn_updater_skipped, updater, parameters), 1U);
    EXPECT_EQ(count(&tn_updater_steps, updater, parameters), 1U);

    step(made, updater, 3);  // as if the step before had not been
    Bytes next, expected;
    add_parameters(next, parameters);
    EXPECT_NE(next, before);
    const Parameters others = host_->parameters({model_.cost}, 1);
    const Machine other = machine(others, TN_BF16);
    const Updater fresh = host_->updater("adam", attributes);
    step(other, fresh, 1);
    step(other, fresh, 3);
    add_parameters(expected, others);
    EXPECT_EQ(next, expected);
  }
}

// In full precision the application finds what it did: numbers that are not finite.
TEST_P(Bf16, OtherMachinesSkipNothing) {
  const Parameters parameters = host_->parameters({model_.cost}, 1);
  const Machine made = machine(parameters, TN_F32);
  const Updater updater = host_->updater("sgd", {{"learning_rate", 0.01}});
  step(made, updater, 1, true);
  EXPECT_EQ(count(&tn_updater_skipped, updater, parameters), 0U);
  EXPECT_EQ(count(&tn_updater_steps, updater, parameters), 1U);
}

INSTANTIATE_TEST_SUITE_P(Devices, Bf16, testing::Values("cpu", "far"),
                         [](const auto& test) { return std::string(test.param); });

TEST(ComputeType, IsRefusedByName) {
  const FarHost host;
  const Model model(*host);
  MachineOptions options;
  options.max_samples = 8, options.compute = TN_I32;
  try {
    (void)host->machine(host->parameters({model.cost}, 1), {model.cost}, options);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), TN_UNSUPPORTED);
    EXPECT_THAT(std::string(error.what()),
                testing::HasSubstr("compute type int32; expected float32, float64, bf16 or tf32"));
  }
}

}  // namespace
}  // namespace tenon_tests

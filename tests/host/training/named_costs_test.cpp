// Several costs, each reported by name beside their sum. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <tenon/tenon_updater.hpp>

#include "tests/host/training/line_model.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

using Named = std::map<std::string, double>;

Named by_name(const std::vector<Metric>& values) {
  Named result;
  for (const Metric& value : values) EXPECT_TRUE(result.emplace(value.name, value.value).second) << value.name;
  return result;
}

class NamedCosts : public LineModel {
 protected:
  // Costs of 1 * mean(line), whose layer is called "cost", and of weight * mean(line^2) / 2.
  NamedCosts() {
    const Layer zeros = host_.layer("scale_shift", {x_}, {{"scale", 0.0}}, "zeros");
    square_ = host_.layer("square_error", {line_, zeros}, {{"coefficient", 0.5}}, "square");
    square_of_metric_ = host_.layer("square_error", {line_, zeros}, {}, "average");
  }
  [[nodiscard]] TrainOptions several(double rate = 0) const {
    TrainOptions options = training(rate);
    options.outputs = {cost_, line_, square_, average_};
    return options;
  }

  Layer square_, square_of_metric_;
};

TEST_F(NamedCosts, AddUpInTestsEventsAndMachines) {
  TrainOptions options = several();
  std::vector<Named> minibatches, passes;
  options.handler = [&](const Event& event) {
    if (event.kind() == TN_END_ITERATION) {
      minibatches.push_back(by_name(event.costs()));
      EXPECT_EQ(by_name(event.machine().costs()), minibatches.back());
    }
    if (event.kind() == TN_END_PASS || event.kind() == TN_END_TRAINING) passes.push_back(by_name(event.costs()));
    if (event.kind() == TN_BEGIN_ITERATION) {
      EXPECT_THAT(event.costs(), IsEmpty());
    }
    double sum = 0;
    for (const Metric& cost : event.costs()) sum += cost.value;
    if (!event.costs().empty()) {
      EXPECT_NEAR(sum, event.cost(), 1e-6 * event.cost());
    }
  };
  train(options);
  const TestResult tested = tenon::test(options);
  // x is 0 to 9, the line is x: the mean of x is 4.5, of x^2 28.5.
  const Named whole = by_name(tested.costs);
  ASSERT_THAT(whole, UnorderedElementsAre(Pair("cost.cost", testing::_), Pair("square", testing::_)));
  EXPECT_NEAR(whole.at("cost.cost"), 4.5, 1e-5);
  EXPECT_NEAR(whole.at("square"), tested.cost - 4.5, 1e-5);
  const double per_square = whole.at("square") / 28.5;
  EXPECT_GT(per_square, 0);
  ASSERT_EQ(minibatches.size(), 3U);
  EXPECT_NEAR(minibatches[0].at("cost.cost"), 1.5, 1e-5);
  EXPECT_NEAR(minibatches[0].at("square"), 3.5 * per_square, 1e-5);
  EXPECT_NEAR(minibatches[2].at("square"), 72.5 * per_square, 1e-4) << "the short minibatch";
  EXPECT_THAT(passes, testing::Each(whole));
  EXPECT_EQ(passes.size(), 2U);
}

TEST_F(NamedCosts, OneCostHasNoNames) {
  TrainOptions options = training();
  options.handler = [](const Event& event) { EXPECT_THAT(event.costs(), IsEmpty()); };
  train(options);
  EXPECT_THAT(tenon::test(options).costs, IsEmpty());
  options.outputs.push_back(cost_);  // twice the same
  EXPECT_THAT(tenon::test(options).costs, IsEmpty());
}

TEST_F(NamedCosts, ANameOfAMetricGetsTheWordCost) {
  TrainOptions options = several();
  options.outputs = {square_, square_of_metric_, host_.layer("average", {x_}, {}, "m")};
  const TestResult tested = tenon::test(options);
  ASSERT_EQ(tested.metrics.size(), 1U);
  EXPECT_EQ(tested.metrics[0].name, "average");
  const Named costs = by_name(tested.costs);
  ASSERT_THAT(costs, UnorderedElementsAre(Pair("square", testing::_), Pair("average.cost", testing::_)));
  EXPECT_NEAR(costs.at("square"), 0.5 * costs.at("average.cost"), 1e-5) << "times the coefficient";
}

TEST_F(NamedCosts, AreSummedByHand) {
  const TrainOptions options = several();
  MachineOptions wanted;
  wanted.max_samples = kBatch;
  const Machine machine = host_.machine(options.parameters, options.outputs, wanted);
  const Metrics sums(machine), more(machine);
  const Floats xs[] = {{0, 1, 2, 3}, {4}};
  for (const Floats& x : xs) {
    machine.forward({{"x", {TN_F32, {static_cast<int64_t>(x.size()), 1}, x.data()}}});
    (x.size() == 1 ? more : sums).append(machine);
  }
  sums.merge(more);
  const Metrics::Values values = sums.read();
  EXPECT_NEAR(by_name(values.costs).at("cost.cost"), 2, 1e-6);
  EXPECT_NEAR(by_name(values.costs).at("cost.cost") + by_name(values.costs).at("square"), values.cost, 1e-6);
  const Machine other = host_.machine(options.parameters, {cost_, average_}, wanted);
  const Metrics single(other);
  EXPECT_THAT(refusal([&] { sums.merge(single); }, TN_INVALID), HasSubstr("another number of costs"));
}

TEST_F(NamedCosts, ShardsAddUp) {
  TrainOptions options = several();
  const Named one = by_name(tenon::test(options).costs);
  options.reader = samples().batch(2);
  options.devices = {"cpu", "cpu"};
  const Named two = by_name(tenon::test(options).costs);
  ASSERT_EQ(one.size(), two.size());
  for (const auto& [name, value] : one) EXPECT_NEAR(two.at(name), value, 1e-5) << name;
}

// Stopped in the middle of a pass, a training goes on with the sums so far.
TEST_F(NamedCosts, AResumedPassReportsItsWhole) {
  const TemporaryFolder folder;
  const auto costs_of_passes = [&](int64_t stop_at, uint32_t start) {
    TrainOptions options = several(0.01);
    options.passes = 2;
    options.checkpoint.emplace();
    options.checkpoint->folder = folder.file(stop_at == 0 && start == TN_START_FRESH ? "whole" : "parts");
    options.checkpoint->start = start;
    std::vector<Named> passes;
    int64_t done = 0;
    options.handler = [&](const Event& event) {
      if (event.kind() == TN_END_ITERATION && ++done == stop_at) event.stop();
      if (event.kind() == TN_END_PASS) passes.push_back(by_name(event.costs()));
    };
    train(options);
    return passes;
  };
  const std::vector<Named> whole = costs_of_passes(0, TN_START_FRESH);
  ASSERT_EQ(whole.size(), 2U);
  EXPECT_THAT(costs_of_passes(2, TN_START_FRESH), IsEmpty());
  EXPECT_EQ(costs_of_passes(0, TN_START_RESUME), whole);
}

// The records of all updaters have the version of the checkpoint, which several costs raise.
TEST_F(NamedCosts, GroupsOfUpdatersAreResumed) {
  const TemporaryFolder folder;
  const auto trained = [&](int64_t passes, bool checkpoints) {
    TrainOptions options = several(0.01);
    options.groups = {{host_.updater("adam", {{"learning_rate", 0.1}}), {"line.bias"}}};
    options.passes = passes;
    if (checkpoints) options.checkpoint.emplace();
    if (checkpoints) options.checkpoint->folder = folder.file("saves");
    if (checkpoints) options.checkpoint->start = TN_START_RESUME_OR_FRESH;
    train(options);
    return values(options);
  };
  trained(1, true);
  EXPECT_EQ(trained(2, true), trained(2, false));
}

TEST_F(NamedCosts, ChooseTheBestAndEndATraining) {
  const TemporaryFolder folder;
  TrainOptions options = several();
  options.passes = 100;
  options.early_stop = EarlyStopOptions{"square", false, 2, 0};
  options.checkpoint.emplace();
  options.checkpoint->folder = folder.file("saves");
  options.checkpoint->best = "cost.cost";
  int64_t passes = 0;
  options.handler = [&](const Event& event) { passes += event.kind() == TN_END_PASS ? 1 : 0; };
  train(options);
  EXPECT_EQ(passes, 3) << "nothing improves";
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "saves" / "best.safetensors"));
  options.checkpoint.reset();
  options.early_stop->metric = "squre";
  EXPECT_THAT(refusal([&] { train(options); }, TN_INVALID), HasSubstr("did you mean \"square\"?"));
}

}  // namespace

}  // namespace tenon_tests

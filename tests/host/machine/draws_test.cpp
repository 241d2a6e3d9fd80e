// The draws of a model are determined by the seed and by the number of updates of its parameters.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <tenon/tenon.hpp>

#include "tests/support/paths.h"
#include "tests/support/test_layers.h"

namespace tenon_tests {

using namespace tenon;

namespace {

constexpr int64_t kSamples = 8, kColumns = 32;
using Floats = std::vector<float>;

Floats numbers(const Array& array) {
  const auto* data = static_cast<const float*>(array.data);
  return {data, data + array.count()};
}

// Sample i: the id i, and a weight of 1 for each column.
struct Rows {
  [[nodiscard]] static int64_t size() { return kSamples; }
  static void read(int64_t index, Sample& sample) {
    sample.set("ids", index);
    sample.set("weight", Floats(kColumns, 1));
  }
};

// values [kSamples, kColumns] -> dropout -> sum. The learning rate of train() cancels the mean over samples, so that an
// update subtracts the scaled mask: parameters that began at 0 show which elements were kept, and how often.
struct Dropping {
  explicit Dropping(int threads = 2) : host_({threads, {tenon_tests::plugin_folder()}, nullptr, {}}) {
    host_.add_plugin(&test_layers());
    DataOptions ids, weight;
    ids.name = "ids", ids.dtype = TN_I64;
    weight.name = "weight", weight.shape = {kColumns};
    const Layer x = host_.layer("test_input", {host_.data(ids)},
                                {{"rows", kSamples}, {"shape", std::vector<int64_t>{kColumns}}}, "x");
    dropped_ = host_.layer("dropout", {x}, {{"rate", 0.5}}, "dropped");
    cost_ = host_.layer("test_cost", {dropped_, host_.data(weight)}, {}, "cost");
    parameters_ = host_.parameters({cost_}, 1);
    restart();
  }

  void restart() {
    const Floats zeros(kSamples * kColumns, 0);
    parameters_.set("x.values", {TN_F32, {kSamples, kColumns}, zeros.data()});
  }
  // Trains with one update per pass and returns the parameters: minus the sum of the scaled masks since restart().
  Floats train(uint64_t seed, int64_t passes = 1) {
    TrainOptions options;
    options.outputs = {cost_};
    options.parameters = parameters_;
    options.updater = host_.updater("sgd", {{"learning_rate", static_cast<double>(kSamples)}});
    options.reader = host_.reader({{"ids", TN_I64}, {"weight", TN_F32, {kColumns}}}, Rows()).batch(kSamples);
    options.seed = seed;
    options.passes = passes;
    tenon::train(options);
    return numbers(parameters_.get("x.values"));
  }
  [[nodiscard]] Machine machine(uint64_t seed) const {
    MachineOptions options;
    options.max_samples = kSamples, options.training = true, options.seed = seed;
    return host_.machine(parameters_, {cost_, dropped_}, options);
  }
  static void forward(const Machine& machine) {
    std::vector<int64_t> ids(kSamples);
    std::iota(ids.begin(), ids.end(), 0);
    const Floats ones(kSamples * kColumns, 1);
    machine.forward(
        {{"ids", {TN_I64, {kSamples}, ids.data()}}, {"weight", {TN_F32, {kSamples, kColumns}, ones.data()}}});
  }
  // Runs a step and returns its gradient, which is 0 for dropped elements.
  static Floats step(const Machine& machine) {
    forward(machine);
    machine.backward();
    return numbers(machine.gradient("x.values"));
  }

  Host host_;
  Layer dropped_, cost_;
  Parameters parameters_;
};

class Draws : public testing::Test, protected Dropping {};

// Returns the share of elements on which two masks agree: about 0.5 if they are independent.
double alike(const Floats& a, const Floats& b) {
  int64_t equal = 0;
  for (size_t i = 0; i < a.size(); ++i) equal += (a[i] == 0) == (b[i] == 0) ? 1 : 0;
  return static_cast<double>(equal) / static_cast<double>(a.size());
}

TEST_F(Draws, ASecondTrainingDropsOtherElements) {
  const Floats first = train(5);
  EXPECT_GT(std::count(first.begin(), first.end(), 0.0F), 0);
  restart();
  const Floats second = train(5);
  EXPECT_LT(alike(first, second), 0.7);
  restart();
  EXPECT_LT(alike(second, train(5)), 0.7);
}

TEST_F(Draws, TwoTrainingsAreOneOfTwicePasses) {
  (void)train(5, 2);
  const Floats apart = train(5, 3);
  const Parameters other = host_.parameters({cost_}, 1);
  parameters_ = other;
  restart();
  EXPECT_EQ(train(5, 5), apart);
}

TEST_F(Draws, FollowFromTheSeedForAnyThreads) {
  const Floats one = train(5, 3);
  Dropping again(1);
  EXPECT_EQ(again.train(5, 3), one);
  Dropping other(1);
  EXPECT_NE(other.train(6, 3), one);
}

// A backward uses the draws of its forward, even if another machine updates the parameters in between.
TEST_F(Draws, AreOfTheForwardInItsBackward) {
  const Machine a = machine(5), b = machine(5);
  const Floats first = step(b);
  EXPECT_EQ(step(a), first) << "same seed, before any update";
  const Updater updater = host_.updater("sgd", {{"learning_rate", 0.0}});
  updater.update(a);
  const Floats second = step(a);
  EXPECT_LT(alike(first, second), 0.7);
  updater.update(a);
  forward(a);
  updater.update(b);  // with the gradients of its first step
  a.backward();
  const Floats third = numbers(a.gradient("x.values"));
  EXPECT_LT(alike(second, third), 0.7);
  updater.update(a);
  // The parameters have had four updates. Another ParameterSet gives the same masks in its first three steps.
  parameters_ = host_.parameters({cost_}, 1);
  const Machine alone = machine(5);
  EXPECT_EQ(step(alone), first);
  updater.update(alone);
  EXPECT_EQ(step(alone), second);
  updater.update(alone);
  EXPECT_EQ(step(alone), third) << "the number of updates at the forward counts";
  updater.update(alone);
  EXPECT_LT(alike(step(alone), step(a)), 0.7) << "the first set has had one more update";
  updater.update(alone);
  EXPECT_EQ(step(alone), step(machine(5))) << "a new machine continues with the draws of the set";
}

// Sampled costs draw in a test, too; these draws do not depend on the number of updates.
TEST_F(Draws, OfATestAreAlwaysTheSame) {
  DataOptions label;
  label.name = "label", label.dtype = TN_I64, label.index_limit = 50;
  DataOptions input;
  input.name = "input", input.shape = {4};
  const Layer cost = host_.layer("nce", {host_.data(input), host_.data(label)}, {{"num_classes", 50}}, "sampled");
  struct Samples {
    [[nodiscard]] static int64_t size() { return kSamples; }
    static void read(int64_t index, Sample& sample) {
      sample.set("input", Floats(4, static_cast<float>(index)));
      sample.set("label", index);
    }
  };
  TrainOptions options;
  options.outputs = {cost};
  options.parameters = host_.parameters({cost}, 1);
  options.updater = host_.updater("sgd", {{"learning_rate", 0.0}});
  options.reader = host_.reader({{"input", TN_F32, {4}}, {"label", TN_I64, {}, 50}}, Samples()).batch(4);
  std::vector<double> costs;
  options.handler = [&](const Event& event) {
    if (event.kind() == TN_END_PASS) costs.push_back(event.cost());
  };
  const double before = tenon::test(options).cost;
  tenon::train(options);
  tenon::train(options);
  EXPECT_NE(costs.at(0), costs.at(1)) << "in training, the draws differ from step to step";
  EXPECT_EQ(tenon::test(options).cost, before);
}

// A machine that is planned again for more rows keeps the draws of its step.
TEST(DrawsOfRows, GoOnWhenAMachineGrows) {
  const Host host({1, {tenon_tests::plugin_folder()}, nullptr, {}});
  host.add_plugin(&test_layers());
  DataOptions data;
  data.name = "x", data.shape = {3}, data.storage = TN_RAGGED;
  const Layer x = host.data(data);
  const Layer dropped =
      host.layer("dropout", {host.layer("fc", {x}, {{"size", 3}}, "line")}, {{"rate", 0.5}}, "dropped");
  const Layer cost = host.layer("test_cost", {dropped, x}, {}, "cost");
  const auto last_mask = [&](int64_t max_rows, int updates) {
    const Parameters parameters = host.parameters({cost}, 1);
    MachineOptions options;
    options.max_samples = 1, options.training = true, options.seed = 7, options.max_rows = max_rows;
    const Machine machine = host.machine(parameters, {cost, dropped}, options);
    const Updater updater = host.updater("sgd", {{"learning_rate", 0.0}});
    const auto forward = [&](int64_t rows) {
      const Floats values(static_cast<size_t>(3 * rows), 1);
      const std::vector<int64_t> ends = {0, rows};
      machine.forward({{"x", Array::sequences(TN_F32, {rows, 3}, values.data(), 1, ends.data())}});
    };
    for (int i = 0; i < updates; ++i) {
      forward(2);
      machine.backward();
      updater.update(machine);
    }
    forward(100);
    return numbers(machine.output(dropped));
  };
  EXPECT_EQ(last_mask(0, 2), last_mask(100, 2));
  EXPECT_LT(alike(last_mask(0, 2), last_mask(0, 0)), 0.7);
}

}  // namespace
}  // namespace tenon_tests

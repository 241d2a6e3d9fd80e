// Events, stops, costs, samples and immutable parameters of a training, compared with exact numbers.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tenon/tenon.hpp>

#include "tests/support/paths.h"
#include "tests/support/test_layers.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kSamples = 10, kBatch = 4;
using Floats = std::vector<float>;
using Kinds = std::vector<int>;

// Sample i has x = i.
struct Count {
  [[nodiscard]] static int64_t size() { return kSamples; }
  static void read(int64_t index, Sample& sample) { sample.set("x", {static_cast<double>(index)}); }
};

// The same samples from a stream, which cannot seek.
auto stream(int64_t samples) {
  return [samples, next = int64_t{0}](Sample& sample) mutable {
    if (next == samples) {
      next = 0;
      return false;
    }
    Count::read(next++, sample);
    return true;
  };
}

// cost = weight * x + bias; with the first values 1 and 0, its mean over samples is the mean of x.
class Trainer : public testing::Test {
 protected:
  Trainer() : host_({1, {tenon_tests::plugin_folder()}, nullptr, {}}) {
    host_.add_plugin(&test_layers());
    DataOptions x;
    x.name = "x", x.shape = {1};
    x_ = host_.data(x);
    line_ = host_.layer("fc", {x_}, {{"size", 1}}, "line");
    ones_ = host_.layer("scale_shift", {x_}, {{"scale", 0.0}, {"shift", 1.0}}, "ones");
    cost_ = host_.layer("test_cost", {line_, ones_}, {}, "cost");
    options_.outputs = {cost_};
    options_.reader = host_.reader(kSchema, Count()).batch(kBatch);
    options_.updater = host_.updater("sgd", {{"learning_rate", 0.0}});
    options_.handler = [&](Event& event) {
      told_.push_back({event.kind(), event.pass(), event.batch(), event.samples(), event.cost()});
      if (stop_ && stop_(event)) event.stop();
    };
    reset();
  }

  void reset() {
    options_.parameters = host_.parameters({cost_}, 1);
    const Floats one = {1}, zero = {0};
    options_.parameters.set("line.weight", {TN_F32, {1, 1}, one.data()});
    options_.parameters.set("line.bias", {TN_F32, {1}, zero.data()});
    told_.clear();
  }
  [[nodiscard]] float value(const std::string& name) const {
    return *static_cast<const float*>(options_.parameters.get(name).data);
  }
  // Returns the kinds of all events of a training that ends when `stop` returns true; null: never.
  Kinds stopped(const std::function<bool(const Event&)>& stop) {
    told_.clear();
    stop_ = stop;
    train(options_);
    stop_ = nullptr;
    Kinds kinds;
    for (const Told& told : told_) kinds.push_back(told.kind);
    return kinds;
  }
  // Returns the number of samples of each pass that ended.
  [[nodiscard]] std::vector<int64_t> passes() const {
    std::vector<int64_t> samples;
    for (const Told& told : told_)
      if (told.kind == TN_END_PASS) samples.push_back(told.samples);
    return samples;
  }

  struct Told {
    int kind;
    int64_t pass, batch, samples;
    double cost;
  };
  inline static const Schema kSchema = {{"x", TN_F32, {1}}};
  Host host_;
  Layer x_, line_, ones_, cost_;
  TrainOptions options_;
  std::vector<Told> told_;
  std::function<bool(const Event&)> stop_;
};

TEST_F(Trainer, StopsWhereItIsTold) {
  options_.updater = host_.updater("sgd", {{"learning_rate", 0.125}});
  options_.passes = 3;
  const auto at = [](int kind) { return [kind](const Event& event) { return event.kind() == kind; }; };
  EXPECT_THAT(stopped(at(TN_BEGIN_TRAINING)), ElementsAre(TN_BEGIN_TRAINING, TN_END_TRAINING));
  EXPECT_THAT(stopped(at(TN_BEGIN_PASS)), ElementsAre(TN_BEGIN_TRAINING, TN_BEGIN_PASS, TN_END_TRAINING));
  EXPECT_THAT(stopped(at(TN_BEGIN_ITERATION)),
              ElementsAre(TN_BEGIN_TRAINING, TN_BEGIN_PASS, TN_BEGIN_ITERATION, TN_END_TRAINING));
  EXPECT_EQ(value("line.bias"), 0) << "no update was made";
  EXPECT_THAT(stopped(at(TN_END_ITERATION)),
              ElementsAre(TN_BEGIN_TRAINING, TN_BEGIN_PASS, TN_BEGIN_ITERATION, TN_END_ITERATION, TN_END_TRAINING));
  EXPECT_EQ(value("line.bias"), -0.125F) << "one update was made";
  EXPECT_EQ(stopped(at(TN_END_PASS)).size(), 1U + 1 + 2 * 3 + 1 + 1);
  EXPECT_THAT(passes(), ElementsAre(kSamples)) << "one of three passes";
  EXPECT_THAT(stopped(at(TN_END_TRAINING)).size(), 1U + 3 * (1 + 2 * 3 + 1) + 1);
}

TEST_F(Trainer, NumbersPassesAndMinibatches) {
  options_.passes = 2;
  train(options_);
  const std::vector<std::pair<int64_t, int64_t>> places = {
      {0, 0},                                                          // the training begins
      {0, 0}, {0, 0}, {0, 0}, {0, 1}, {0, 1}, {0, 2}, {0, 2}, {0, 3},  // pass 0, three minibatches, its end
      {1, 0}, {1, 0}, {1, 0}, {1, 1}, {1, 1}, {1, 2}, {1, 2}, {1, 3}};
  ASSERT_EQ(told_.size(), places.size() + 1);
  for (size_t i = 0; i < places.size(); ++i) {
    EXPECT_EQ(told_[i].pass, places[i].first) << i;
    EXPECT_EQ(told_[i].batch, places[i].second) << i;
  }
  EXPECT_EQ(told_.back().kind, TN_END_TRAINING);
  EXPECT_EQ(told_.back().pass, 1) << "the last pass that ran";

  options_.passes = 5;
  stopped([](const Event& event) { return event.pass() == 2 && event.kind() == TN_END_ITERATION; });
  EXPECT_EQ(told_.back().pass, 2);
  options_.passes = 0;
  EXPECT_THAT(stopped(nullptr), ElementsAre(TN_BEGIN_TRAINING, TN_END_TRAINING));
  EXPECT_EQ(told_.back().pass, 0);
}

// The minibatches have x = 0 to 3, 4 to 7, and 8 and 9: the cost of a pass is a mean over samples, not minibatches.
TEST_F(Trainer, CostsAreMeansOverSamples) {
  options_.passes = 2;
  train(options_);
  std::vector<double> minibatches;
  for (const Told& told : told_) {
    if (told.kind == TN_END_ITERATION) minibatches.push_back(told.cost);
    if (told.kind != TN_END_PASS && told.kind != TN_END_TRAINING) continue;
    EXPECT_EQ(told.cost, 4.5);
    EXPECT_EQ(told.samples, kSamples);
  }
  EXPECT_THAT(minibatches, ElementsAre(1.5, 5.5, 8.5, 1.5, 5.5, 8.5));
  EXPECT_THAT(passes(), ElementsAre(kSamples, kSamples));

  stopped([](const Event& event) { return event.kind() == TN_END_ITERATION && event.batch() == 1; });
  EXPECT_EQ(told_.back().cost, 3.5) << "of the two minibatches before the stop";
  EXPECT_EQ(told_.back().samples, 2 * kBatch);

  const TestResult tested = tenon::test(options_);
  EXPECT_EQ(tested.cost, 4.5);
  EXPECT_EQ(tested.samples, kSamples);
}

TEST_F(Trainer, MetricsOfOneNameAreToldApart) {
  const Layer of_x = host_.layer("average", {x_}, {}, "inputs");
  const Layer of_ones = host_.layer("average", {ones_}, {}, "others");
  const auto names = [](const std::vector<Metric>& metrics) {
    std::vector<std::string> result;
    for (const Metric& metric : metrics) result.push_back(metric.name);
    return result;
  };
  options_.outputs = {cost_, of_x};
  EXPECT_THAT(names(tenon::test(options_).metrics), ElementsAre("average"));
  options_.outputs = {cost_, of_x, of_ones};
  std::vector<Metric> told;
  options_.handler = [&](const Event& event) {
    if (event.kind() == TN_END_PASS) told = event.metrics();
  };
  train(options_);
  for (const std::vector<Metric>& metrics : {told, tenon::test(options_).metrics}) {
    ASSERT_THAT(names(metrics), ElementsAre("inputs.average", "others.average"));
    EXPECT_EQ(metrics[0].value, 4.5);
    EXPECT_EQ(metrics[1].value, 1);
  }
}

// A training of a stream continues after the last sample of the stopped one: samples are neither repeated nor skipped.
TEST_F(Trainer, GoesOnWhereAStreamWasLeft) {
  for (const int64_t samples : {kSamples, 2 * kBatch}) {
    options_.reader = host_.reader(kSchema, stream(samples)).batch(kBatch);
    const int64_t last = (samples - 1) / kBatch;
    // Stopped after the last sample, before the end of the pass: the next pass is whole, not empty.
    stopped([&](const Event& event) { return event.kind() == TN_END_ITERATION && event.batch() == last; });
    EXPECT_THAT(passes(), IsEmpty());
    stopped(nullptr);
    EXPECT_THAT(passes(), ElementsAre(samples));
    // Stopped within a pass: the rest of the pass comes first.
    stopped([](const Event& event) { return event.kind() == TN_END_ITERATION; });
    options_.passes = 2;
    stopped(nullptr);
    options_.passes = 1;
    EXPECT_THAT(passes(), ElementsAre(samples - kBatch, samples));
    EXPECT_EQ(tenon::test(options_).samples, samples);
  }
}

TEST_F(Trainer, LeavesImmutableParametersAlone) {
  options_.updater = host_.updater("sgd", {{"learning_rate", 0.125}});
  options_.immutable_parameters = {"line.weight"};
  train(options_);
  EXPECT_EQ(value("line.weight"), 1);
  EXPECT_EQ(value("line.bias"), -3 * 0.125F);
  options_.immutable_parameters = {"line"};
  EXPECT_THROW(train(options_), Error) << "nothing is left to train";
  options_.immutable_parameters = {"lime"};
  EXPECT_THROW(train(options_), Error);
  EXPECT_EQ(value("line.bias"), -3 * 0.125F);
}

}  // namespace
}  // namespace tenon_tests

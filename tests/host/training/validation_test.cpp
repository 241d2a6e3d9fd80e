// Tests within a training: when they are made, early stopping, the best checkpoint, and all of it after a resume.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "tests/host/training/line_model.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class Validation : public LineModel {
 protected:
  struct Told {
    int kind;
    int64_t pass, batch, samples;
    double cost;
    bool operator==(const Told& other) const {
      return kind == other.kind && pass == other.pass && batch == other.batch && cost == other.cost;
    }
  };
  // A training of several passes with tests on samples from 1 to 10.
  [[nodiscard]] TrainOptions tested(int64_t passes, int64_t every_passes, int64_t every_batches) {
    TrainOptions options = training();
    options.passes = passes;
    options.test.emplace();
    options.test->reader = samples(1).batch(7);
    options.test->every_passes = every_passes;
    options.test->every_batches = every_batches;
    options.handler = [&](const Event& event) {
      if (event.kind() == TN_END_TRAINING) reason_ = event.reason();
      if (event.kind() == TN_TEST)
        told_.push_back({event.kind(), event.pass(), event.batch(), event.samples(), event.cost()});
    };
    told_.clear();
    return options;
  }
  // Returns the places of the tests: passes, and minibatches of the next.
  [[nodiscard]] std::vector<std::pair<int64_t, int64_t>> places() const {
    std::vector<std::pair<int64_t, int64_t>> result;
    for (const Told& told : told_) result.emplace_back(told.pass, told.batch);
    return result;
  }
  std::vector<Told> told_;
  uint32_t reason_ = 0;
};

TEST_F(Validation, ATestMeasuresWithoutATrace) {
  TrainOptions plain = training();
  plain.passes = 2;
  train(plain);
  TrainOptions options = tested(2, 0, 0);
  std::vector<double> expected;
  const EventHandler note = options.handler;
  options.handler = [&](Event& event) {
    note(event);
    if (event.kind() != TN_TEST) return;
    const Floats now = values(options);
    expected.push_back(5.5 * now[0] + now[1]);
    ASSERT_THAT(event.metrics(), SizeIs(1));
    EXPECT_EQ(event.metrics()[0].value, 5.5);
    EXPECT_EQ(event.samples(), kSamples);
  };
  train(options);
  EXPECT_EQ(values(options), values(plain));
  ASSERT_THAT(told_, SizeIs(2));
  for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(told_[i].cost, expected[i], 1e-4);
}

TEST_F(Validation, TestsComeWhenTheyAreDue) {
  train(tested(5, 2, 0));
  EXPECT_THAT(places(), ElementsAre(std::pair{1, 3}, std::pair{3, 3}));
  train(tested(2, 0, 2));
  EXPECT_THAT(places(), ElementsAre(std::pair{0, 1}, std::pair{1, 0}, std::pair{1, 2}));
  train(tested(2, 1, 2));  // each test begins the count anew
  EXPECT_THAT(places(), ElementsAre(std::pair{0, 1}, std::pair{0, 3}, std::pair{1, 1}, std::pair{1, 3}));
  TrainOptions few = tested(1, 0, 0);
  few.test->batches = 1;
  train(few);
  EXPECT_EQ(told_.at(0).samples, 7);
  TrainOptions other = tested(1, 0, 0);
  other.test->outputs = {average_};
  train(other);
  EXPECT_EQ(told_.at(0).cost, 0) << "the outputs of the test have no cost";
}

TEST_F(Validation, EarlyStoppingCountsMeasurementsWithoutImprovement) {
  TrainOptions options = tested(100, 1, 0);
  options.early_stop.emplace();
  options.early_stop->metric = "average";  // always 5.5
  options.early_stop->patience = 3;
  train(options);
  EXPECT_THAT(told_, SizeIs(4)) << "the first is the best";
  EXPECT_EQ(reason_, TN_REASON_EARLY);

  options = tested(6, 1, 0);  // the cost falls without end
  options.early_stop.emplace();
  train(options);
  EXPECT_THAT(told_, SizeIs(6));
  EXPECT_EQ(reason_, TN_REASON_PASSES);
  options = tested(100, 1, 0);
  options.early_stop.emplace();
  options.early_stop->best_is_highest = true;
  train(options);
  EXPECT_THAT(told_, SizeIs(2));
  options = tested(100, 1, 0);
  options.early_stop.emplace();
  options.early_stop->min_delta = 1e6;
  train(options);
  EXPECT_THAT(told_, SizeIs(2)) << "it falls by less";

  options = tested(100, 1, 0);  // without tests: the passes of the training
  options.test.reset();
  options.early_stop.emplace();
  options.early_stop->metric = "average";
  int passes = 0;
  options.handler = [&](const Event& event) { passes += event.kind() == TN_END_PASS ? 1 : 0; };
  train(options);
  EXPECT_EQ(passes, 2);
}

TEST_F(Validation, TheBestCheckpointIsThatOfTheBestTest) {
  const TemporaryFolder folder;
  TrainOptions options = tested(4, 1, 0);
  options.checkpoint.emplace();
  options.checkpoint->folder = folder.file("saves");
  options.checkpoint->best = "cost";
  options.checkpoint->best_is_highest = true;  // the first test
  Floats first;
  const EventHandler note = options.handler;
  options.handler = [&](Event& event) {
    note(event);
    if (event.kind() == TN_TEST && first.empty()) first = values(options);
  };
  train(options);
  EXPECT_EQ(values(host_.load(folder.file("saves/best.safetensors")).parameters), first);
  TrainOptions unknown = tested(4, 1, 0);
  unknown.checkpoint = options.checkpoint;
  unknown.checkpoint->folder = folder.file("others");
  unknown.checkpoint->best = "averag";
  EXPECT_THAT(refusal([&] { train(unknown); }, TN_INVALID), HasSubstr("did you mean \"average\"?"));
}

// A training that is stopped at any event, or cancelled, and resumed makes the same tests and ends at the same place.
TEST_F(Validation, AResumeMakesTheSameTests) {
  const auto options = [&](const TemporaryFolder& folder) {
    TrainOptions made = tested(5, 2, 2);
    made.cancel = Cancel::make();
    made.early_stop.emplace();
    made.early_stop->metric = "average";
    made.early_stop->patience = 4;
    made.checkpoint.emplace();
    made.checkpoint->folder = folder.file("saves");
    made.checkpoint->best = "cost";
    return made;
  };
  const TemporaryFolder plain;
  TrainOptions whole = options(plain);
  train(whole);
  const std::vector<Told> expected = told_;
  ASSERT_THAT(expected, SizeIs(5));
  const double best_cost = expected.back().cost;
  for (const bool cancels : {false, true}) {
    for (int stop = 1; stop < 40; ++stop) {
      const TemporaryFolder folder;
      TrainOptions first = options(folder);
      int events = 0;
      const EventHandler note = first.handler;
      first.handler = [&](Event& event) {
        note(event);
        if (++events != stop) return;
        if (cancels)
          first.cancel.request();
        else
          event.stop();
      };
      train(first);
      std::vector<Told> tests = told_;
      TrainOptions rest = options(folder);
      rest.checkpoint->start = TN_START_RESUME;
      train(rest);
      tests.insert(tests.end(), told_.begin(), told_.end());
      ASSERT_THAT(tests, SizeIs(5)) << stop;
      for (size_t i = 0; i < 5; ++i) EXPECT_EQ(tests[i].cost, expected[i].cost) << stop;
      EXPECT_EQ(values(rest), values(whole)) << stop;
      EXPECT_EQ(reason_, TN_REASON_EARLY) << stop;
      const Parameters best = host_.load(folder.file("saves/best.safetensors")).parameters;
      EXPECT_NEAR(5.5 * values(best)[0] + values(best)[1], best_cost, 1e-4) << stop;
    }
  }
}

// Requests a cancel while the first test reads.
TEST_F(Validation, ACancelledTestIsRepeatedByTheResume) {
  struct Cancelling : Count {
    Cancel cancel;
    void read(int64_t index, Sample& sample) const {
      Count::read(index, sample);
      cancel.request();
    }
  };
  const TemporaryFolder folder;
  TrainOptions whole = tested(2, 0, 2);
  train(whole);
  const std::vector<Told> expected = told_;
  TrainOptions first = tested(2, 0, 2);
  first.cancel = Cancel::make();
  first.test->reader = host_.reader({{"x", TN_F32, {1}}}, Cancelling{{1}, first.cancel}).batch(7);
  first.checkpoint.emplace();
  first.checkpoint->folder = folder.file("saves");
  train(first);
  EXPECT_THAT(told_, SizeIs(0));
  EXPECT_EQ(reason_, TN_REASON_CANCEL);
  TrainOptions rest = tested(2, 0, 2);
  rest.checkpoint = first.checkpoint;
  rest.checkpoint->start = TN_START_RESUME;
  train(rest);
  ASSERT_THAT(told_, SizeIs(expected.size()));
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(told_[i].cost, expected[i].cost);
  EXPECT_EQ(values(rest), values(whole));
}

TEST_F(Validation, AnEndedTrainingStaysEnded) {
  const TemporaryFolder folder;
  TrainOptions options = tested(100, 1, 0);
  options.early_stop.emplace();
  options.early_stop->metric = "average";
  options.checkpoint.emplace();
  options.checkpoint->folder = folder.file("saves");
  train(options);
  TrainOptions again = tested(100, 1, 0);
  again.early_stop = options.early_stop;
  again.checkpoint = options.checkpoint;
  again.checkpoint->start = TN_START_RESUME;
  train(again);
  EXPECT_THAT(told_, SizeIs(0));
  EXPECT_EQ(reason_, TN_REASON_EARLY);
  again = tested(100, 1, 0);
  again.early_stop = options.early_stop;
  again.early_stop->patience = 3;
  again.checkpoint = options.checkpoint;
  again.checkpoint->start = TN_START_RESUME;
  train(again);
  EXPECT_THAT(told_, SizeIs(2)) << "two more";
  for (const bool best : {false, true}) {  // refused before the checkpoint is read
    again = tested(100, 1, 0);
    again.checkpoint = options.checkpoint;
    again.checkpoint->start = TN_START_RESUME;
    if (best) again.checkpoint->best = "nothing";
    again.early_stop = options.early_stop;
    if (!best) again.early_stop->metric = "nothing";
    EXPECT_THAT(refusal([&] { train(again); }, TN_INVALID), HasSubstr("is \"nothing\", which the training does not"));
    EXPECT_THAT(values(again), ElementsAre(1, 0));
  }
}

// The second of three passes has no samples, and so no cost, which is not one of 0.
TEST_F(Validation, APassWithoutSamplesIsNotTheBest) {
  for (const int64_t patience : {1, 2}) {
    const TemporaryFolder folder;
    TrainOptions options = training();
    options.passes = 3;
    int calls = 0;
    const auto next = [&calls](Sample& sample) {
      const int call = calls++;  // a pass ends by a call that gives no sample
      sample.set("x", {4.0});
      return call != 2 && call != 3 && call < 6;
    };
    options.reader = host_.reader({{"x", TN_F32, {1}}}, next).batch(kBatch);
    options.early_stop.emplace();
    options.early_stop->patience = patience;
    options.checkpoint.emplace();
    options.checkpoint->folder = folder.file("saves");
    options.checkpoint->best = "cost";
    std::vector<std::pair<int64_t, double>> passes;
    std::vector<Floats> after;
    options.handler = [&](Event& event) {
      if (event.kind() == TN_END_TRAINING) reason_ = event.reason();
      if (event.kind() != TN_END_PASS) return;
      passes.emplace_back(event.samples(), event.cost());
      after.push_back(values(options));
    };
    train(options);
    ASSERT_THAT(passes, SizeIs(patience == 1 ? 2 : 3));
    EXPECT_EQ(passes[1].first, 0);
    EXPECT_EQ(reason_, patience == 1 ? TN_REASON_EARLY : TN_REASON_PASSES) << "it is one without improvement";
    EXPECT_EQ(values(host_.load(folder.file("saves/best.safetensors")).parameters), after[patience == 1 ? 0 : 2]);
  }
}

TEST_F(Validation, BadOptionsAreRefused) {
  const auto refused = [&](const std::function<void(TrainOptions&)>& change, tn_status code = TN_INVALID) {
    TrainOptions options = tested(1, 1, 0);
    options.early_stop.emplace();
    change(options);
    const std::string message = refusal([&] { train(options); }, code);
    EXPECT_THAT(values(options), ElementsAre(1, 0));
    return message;
  };
  EXPECT_THAT(refused([](TrainOptions& o) { o.test->every_passes = -1; }), HasSubstr("test: every_passes is -1"));
  EXPECT_THAT(refused([](TrainOptions& o) { o.test->every_batches = -2; }), HasSubstr("test: every_batches is -2"));
  EXPECT_THAT(refused([](TrainOptions& o) { o.test->batches = -3; }), HasSubstr("test: batches is -3"));
  EXPECT_THAT(refused([](TrainOptions& o) { o.test->reader = Reader(); }, TN_MISUSE), HasSubstr("test: "));
  EXPECT_THAT(refused([](TrainOptions& o) { o.test->reader = o.reader; }, TN_MISUSE), HasSubstr("in use"));
  EXPECT_THAT(refused([](TrainOptions& o) { o.test->feeding = {{"y", "x"}}; }), HasSubstr("no slot \"y\""));
  EXPECT_THAT(refused([](TrainOptions& o) { o.early_stop->patience = 0; }), HasSubstr("patience is 0"));
  EXPECT_THAT(refused([](TrainOptions& o) { o.early_stop->min_delta = -1; }), HasSubstr("min_delta is -1"));
  EXPECT_THAT(refused([](TrainOptions& o) { o.early_stop->min_delta = NAN; }), HasSubstr("min_delta is nan"));
  EXPECT_THAT(refused([](TrainOptions& o) { o.early_stop->metric = "auc"; }), HasSubstr("metric is \"auc\""));
  TrainOptions empty = tested(1, 1, 0);
  empty.test->reader = host_.reader({{"x", TN_F32, {1}}}, [](Sample&) { return false; }).batch(1);
  EXPECT_THAT(refusal([&] { train(empty); }, TN_BAD_DATA), AllOf(HasSubstr("test"), HasSubstr("no samples")));
}

}  // namespace
}  // namespace tenon_tests

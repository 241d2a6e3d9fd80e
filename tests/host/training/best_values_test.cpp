// The values of the best measurement of a training, kept in sets of their own. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "tests/host/training/line_model.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A cost that falls and rises again: (weight x + bias)^2, in steps that grow.
class BestValues : public LineModel {
 protected:
  BestValues() {
    const Layer zeros = host_.layer("scale_shift", {x_}, {{"scale", 0.0}}, "zeros");
    square_ = host_.layer("square_error", {line_, zeros}, {}, "square");
  }
  struct Measured {
    double value;
    Floats parameters, averages;
  };
  // tests: measured by tests, else by passes. averages: with averages of the parameters.
  [[nodiscard]] TrainOptions options(bool tests = true, bool averages = false) {
    TrainOptions made = training(0.001);
    made.outputs = {square_, average_};
    made.passes = 6;
    if (tests) {
      made.test.emplace();
      made.test->reader = samples(1).batch(7);
    }
    if (averages) {
      made.average.emplace();
      made.average->decay = 0.75;
      made.average->parameters = parameters();
    }
    made.best.emplace();
    made.best->parameters = parameters();
    if (averages) made.best->averages = parameters();
    return made;
  }
  // Notes every measurement, and the best that events have. The steps grow, so that the cost rises in the end.
  [[nodiscard]] EventHandler noting(TrainOptions& of) {
    return [this, &of](Event& event) {
      if (event.kind() == TN_END_PASS) event.set_learning_rate(event.learning_rate() * 3);
      best_ = event.best();
      if (event.kind() != (of.test ? TN_TEST : TN_END_PASS)) return;
      measured_.push_back({event.cost(), values(of), of.average ? values(of.average->parameters) : Floats()});
    };
  }
  void run(TrainOptions& of) {
    of.handler = noting(of);
    train(of);
  }
  [[nodiscard]] const Measured& best_measured() const {
    return *std::min_element(measured_.begin(), measured_.end(),
                             [](const Measured& a, const Measured& b) { return a.value < b.value; });
  }

  Layer square_;
  std::vector<Measured> measured_;
  std::optional<BestMeasurement> best_;
};

TEST_F(BestValues, AreThoseOfTheBestTestOrPass) {
  for (const bool tests : {true, false}) {
    measured_.clear();
    TrainOptions made = options(tests);
    run(made);
    ASSERT_EQ(measured_.size(), 6U);
    const Measured& best = best_measured();
    ASSERT_NE(best.value, measured_.front().value);
    ASSERT_NE(best.value, measured_.back().value) << "the last is not the best";
    EXPECT_EQ(values(made.best->parameters), best.parameters);
    ASSERT_TRUE(best_);
    EXPECT_EQ(best_->value, best.value);
    EXPECT_EQ(best_->pass, &best - measured_.data() + 1);
    EXPECT_EQ(best_->batch, 0);
    TrainOptions plain = options(tests);
    plain.best.reset();
    plain.handler = noting(plain);
    train(plain);
    EXPECT_EQ(values(plain), values(made)) << "the training is the same";
    EXPECT_FALSE(best_);
  }
}

TEST_F(BestValues, OfAMetricAndOfTheHighest) {
  TrainOptions made = options();
  made.best->best_is_highest = true;
  run(made);
  EXPECT_EQ(values(made.best->parameters), measured_.back().parameters);
  measured_.clear();
  made = options();
  made.best->metric = "average";  // always the same: the first stays
  run(made);
  EXPECT_EQ(values(made.best->parameters), measured_.front().parameters);
  EXPECT_EQ(best_->pass, 1);
  made = options();
  made.best->metric = "";
  run(made);
  EXPECT_EQ(best_->value, best_measured().value) << "the cost";
}

TEST_F(BestValues, WithAverages) {
  for (const bool tests : {true, false}) {
    measured_.clear();
    TrainOptions made = options(tests, true);
    run(made);
    EXPECT_EQ(values(made.best->parameters), best_measured().parameters);
    EXPECT_EQ(values(made.best->averages), best_measured().averages);
    EXPECT_NE(values(made.best->averages), values(made.best->parameters));
  }
}

TEST_F(BestValues, AreAModelWithTheNamesOfItsData) {
  TrainOptions made = options();
  run(made);
  const TemporaryFolder folder;
  made.best->parameters.save({line_}, folder.file("best.safetensors"));
  EXPECT_EQ(values(host_.load(folder.file("best.safetensors")).parameters), best_measured().parameters);
}

// Stopped at any event and resumed, a training has the same best values, bit for bit.
TEST_F(BestValues, AResumeHasTheSame) {
  for (const bool averages : {false, true}) {
    measured_.clear();
    TrainOptions whole = options(true, averages);
    run(whole);
    const auto expected = best_;
    for (int stop = 1; stop < 60; stop += 3) {
      const TemporaryFolder folder;
      TrainOptions first = options(true, averages);
      first.checkpoint.emplace();
      first.checkpoint->folder = folder.file("saves");
      const EventHandler note = noting(first);
      first.handler = [&, events = 0](Event& event) mutable {
        note(event);
        if (++events == stop) event.stop();
      };
      train(first);
      TrainOptions rest = options(true, averages);
      rest.checkpoint = first.checkpoint;
      rest.checkpoint->start = TN_START_RESUME;
      rest.handler = noting(rest);
      train(rest);
      EXPECT_EQ(values(rest.best->parameters), values(whole.best->parameters)) << stop;
      if (averages) {
        EXPECT_EQ(values(rest.best->averages), values(whole.best->averages)) << stop;
      }
      ASSERT_TRUE(best_) << stop;
      EXPECT_EQ(best_->value, expected->value) << stop;
      EXPECT_EQ(best_->pass, expected->pass) << stop;
      // Nothing is left: the best is that of the checkpoint.
      TrainOptions again = options(true, averages);
      again.checkpoint = rest.checkpoint;
      best_.reset();
      again.handler = noting(again);
      train(again);
      EXPECT_EQ(values(again.best->parameters), values(whole.best->parameters)) << stop;
      EXPECT_EQ(best_->value, expected->value) << stop;
    }
  }
}

// The checkpoint that is resumed decides, not what the folder has got since.
TEST_F(BestValues, AnEarlierCheckpointHasItsOwn) {
  const TemporaryFolder folder;
  TrainOptions made = options();
  made.checkpoint.emplace();
  made.checkpoint->folder = folder.file("saves");
  made.checkpoint->every_passes = 1;
  made.checkpoint->keep = 100;
  run(made);
  const std::vector<Measured> all = measured_;
  for (int64_t pass = 1; pass <= 6; ++pass) {
    TrainOptions rest = options();
    rest.checkpoint = made.checkpoint;
    rest.checkpoint->start = TN_START_RESUME;
    rest.checkpoint->from = folder.file("saves/checkpoint-" + std::to_string(pass) + "-0.safetensors");
    rest.passes = pass;
    rest.handler = noting(rest);
    train(rest);
    measured_.assign(all.begin(), all.begin() + pass);
    EXPECT_EQ(values(rest.best->parameters), best_measured().parameters) << pass;
    EXPECT_EQ(best_->value, best_measured().value) << pass;
  }
}

TEST_F(BestValues, AnotherMeasurementBeginsAnew) {
  const TemporaryFolder folder;
  const auto resumed = [&](const std::function<void(TrainOptions&)>& change) {
    TrainOptions made = options();
    made.checkpoint.emplace();
    made.checkpoint->folder = folder.file("saves");
    made.checkpoint->start = TN_START_RESUME_OR_FRESH;
    made.passes = 3;
    change(made);
    made.handler = noting(made);
    train(made);
    return made;
  };
  resumed([](TrainOptions& made) { made.best.reset(); });
  TrainOptions made = resumed([](TrainOptions&) {});
  EXPECT_FALSE(best_) << "a checkpoint without best values";
  EXPECT_THAT(values(made.best->parameters), ElementsAre(1, 0));
  made = resumed([](TrainOptions& options) { options.passes = 5; });
  EXPECT_TRUE(best_);
  made = resumed([](TrainOptions& options) { options.best->best_is_highest = true; });
  EXPECT_FALSE(best_) << "of the highest";
  made = resumed([](TrainOptions& options) { options.passes = 6, options.best->metric = "average"; });
  EXPECT_EQ(best_->pass, 6);
  made = resumed([](TrainOptions& options) { options.test.reset(), options.best->metric = "average"; });
  EXPECT_FALSE(best_) << "of passes";
}

// What is measured may be finite while the parameters are not.
TEST_F(BestValues, AreFinite) {
  TrainOptions made = options(false);
  made.best->metric = "average";
  made.updater = host_.updater("sgd", {{"learning_rate", 1e38}});
  made.passes = 2;
  train(made);
  ASSERT_FALSE(std::isfinite(values(made)[0]));
  EXPECT_THAT(values(made.best->parameters), ElementsAre(1, 0));
  made = options(false);
  made.updater = host_.updater("sgd", {{"learning_rate", 1e38}});
  train(made);
  EXPECT_TRUE(std::isfinite(values(made.best->parameters)[0]));
}

TEST_F(BestValues, CanBeUsedByAHandler) {
  TrainOptions made = options();
  std::vector<Floats> seen;
  made.handler = [&](const Event& event) {
    if (event.kind() == TN_END_TRAINING) seen.push_back(values(made.best->parameters));
    if (event.kind() != TN_TEST) return;
    EXPECT_THAT(refusal([&] { train(made); }, TN_MISUSE), testing::Not(testing::IsEmpty()));
    TrainOptions tested = options();
    tested.reader = samples(1).batch(7);
    tested.parameters = made.best->parameters;
    seen.push_back({static_cast<float>(test(tested).cost)});
  };
  train(made);
  ASSERT_EQ(seen.size(), 7U);
  EXPECT_EQ(seen.back(), values(made.best->parameters));
}

TEST_F(BestValues, BadOptionsAreRefused) {
  const auto refused = [&](const std::function<void(TrainOptions&)>& change, tn_status code = TN_INVALID) {
    TrainOptions made = options(true, true);
    change(made);
    const std::string message = refusal([&] { train(made); }, code);
    EXPECT_THAT(values(made), ElementsAre(1, 0));
    return message;
  };
  EXPECT_THAT(refused([](TrainOptions& o) { o.best->metric = "averag"; }), HasSubstr("did you mean \"average\"?"));
  EXPECT_THAT(refused([](TrainOptions& o) { o.best->parameters = o.parameters; }), HasSubstr("another set"));
  EXPECT_THAT(refused([](TrainOptions& o) { o.best->averages = o.average->parameters; }), HasSubstr("another set"));
  EXPECT_THAT(refused([](TrainOptions& o) { o.best->averages = o.best->parameters; }, TN_MISUSE),
              HasSubstr("has not ended"));
  EXPECT_THAT(refused([](TrainOptions& o) { o.best->parameters = o.average->parameters; }, TN_MISUSE),
              HasSubstr("has not ended"));
  EXPECT_THAT(refused([](TrainOptions& o) { o.best->parameters = Parameters(); }, TN_MISUSE), HasSubstr("is not set"));
  EXPECT_THAT(refused([](TrainOptions& o) { o.average.reset(); }), HasSubstr("the training has no averages"));
  EXPECT_THAT(refused([&](TrainOptions& o) { o.best->parameters = host_.declare({cost_}); }, TN_MISUSE),
              HasSubstr("options.best.parameters have no values"));
  const Layer wide = host_.layer("fc", {x_}, {{"size", 2}}, "line"), other = host_.layer("fc", {x_}, {{"size", 1}});
  EXPECT_THAT(refused([&](TrainOptions& o) { o.best->parameters = host_.parameters({wide}, 1); }),
              HasSubstr("best: parameter \"line.weight\": expected [1, 1], the set for the values has [1, 2]"));
  EXPECT_THAT(refused([&](TrainOptions& o) {
                o.best->parameters = host_.parameters({cost_, other}, 1);
              }),
              HasSubstr("which the training does not have"));
}

}  // namespace
}  // namespace tenon_tests

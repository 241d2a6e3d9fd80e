// Averages of the parameters, compared with the formulas in double, after a resume, and where they are used.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/host/training/line_model.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class AveragesTest : public LineModel {
 protected:
  // A training of 3 minibatches per pass.
  [[nodiscard]] TrainOptions averaged(double decay, int64_t window, int64_t begin, int64_t passes = 3) const {
    TrainOptions options = training();
    options.passes = passes;
    options.average.emplace();
    options.average->parameters = host_.parameters({cost_}, 7);
    options.average->decay = decay;
    options.average->window = window;
    options.average->begin = begin;
    return options;
  }
  struct Series {
    std::vector<Floats> parameters, averages;  // after each update
  };
  static Series run(TrainOptions& options) {
    Series series;
    options.handler = [&](const Event& event) {
      if (event.kind() != TN_END_ITERATION) return;
      series.parameters.push_back(values(options));
      series.averages.push_back(values(options.average->parameters));
    };
    train(options);
    return series;
  }
  static void expect_near(const Floats& actual, const std::vector<double>& expected, size_t update) {
    for (size_t i = 0; i < 2; ++i)
      EXPECT_NEAR(actual[i], expected[i], 1e-6 * (1 + std::fabs(expected[i]))) << "update " << update + 1;
  }
  // Returns the mean of elements [begin, end).
  static std::vector<double> mean(const std::vector<Floats>& of, size_t begin, size_t end) {
    std::vector<double> sum = {0, 0};
    for (size_t i = begin; i < end; ++i)
      for (size_t k = 0; k < 2; ++k) sum[k] += of[i][k] / static_cast<double>(end - begin);
    return sum;
  }
};

TEST_F(AveragesTest, ExponentialOnesFollowTheFormula) {
  for (const double decay : {0.5, 0.75, 1.0}) {
    TrainOptions options = averaged(decay, 0, 0);
    const Series series = run(options);
    std::vector<double> expected = {0, 0};
    for (size_t t = 1; t <= 9; ++t) {
      const double d = std::min(decay, static_cast<double>(t - 1) / static_cast<double>(t));
      for (size_t k = 0; k < 2; ++k) expected[k] = d * expected[k] + (1 - d) * series.parameters[t - 1][k];
      expect_near(series.averages[t - 1], expected, t - 1);
    }
    if (decay == 1) expect_near(series.averages[8], mean(series.parameters, 0, 9), 8);
  }
}

TEST_F(AveragesTest, TheFirstUpdatesCanBeLeftOut) {
  TrainOptions options = averaged(1, 0, 4);
  const Series series = run(options);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(series.averages[i], series.parameters[i]);
  for (size_t i = 5; i < 9; ++i) expect_near(series.averages[i], mean(series.parameters, 4, i + 1), i);
}

TEST_F(AveragesTest, WindowsHoldThePresentBlockAndTheOneBefore) {
  TrainOptions options = averaged(1, 3, 1, 4);
  const Series series = run(options);
  const size_t begins[] = {0, 1, 1, 1, 1, 1, 4, 4, 4, 7, 7, 7};  // of the mean after each update
  for (size_t i = 0; i < 12; ++i) expect_near(series.averages[i], mean(series.parameters, begins[i], i + 1), i);
}

TEST_F(AveragesTest, BeforeTheFirstUpdateTheyAreTheParameters) {
  TrainOptions options = averaged(0.5, 0, 0, 0);
  train(options);
  EXPECT_THAT(values(options.average->parameters), ElementsAre(1, 0));
}

TEST_F(AveragesTest, TheTrainingIsTheSameWithThem) {
  TrainOptions plain = training(), options = averaged(0.9, 0, 0, 1);
  train(plain);
  train(options);
  EXPECT_EQ(values(options), values(plain));
}

TEST_F(AveragesTest, TestsAndTheBestModelUseThem) {
  const TemporaryFolder folder;
  TrainOptions options = averaged(0.75, 0, 0, 4);
  options.test.emplace();
  options.test->reader = samples().batch(kSamples);
  options.checkpoint.emplace();
  options.checkpoint->folder = folder.file("saves");
  options.checkpoint->best = "cost";
  Floats last;
  options.handler = [&](const Event& event) {
    if (event.kind() != TN_TEST) return;
    last = values(options.average->parameters);
    EXPECT_NEAR(event.cost(), 4.5 * last[0] + last[1], 1e-5);
  };
  train(options);
  EXPECT_EQ(values(host_.load(folder.file("saves/best-average.safetensors")).parameters), last);
  EXPECT_EQ(values(host_.load(folder.file("saves/best.safetensors")).parameters), values(options));
  const std::string path = folder.file("model.safetensors");
  options.average->parameters.save({line_}, path);
  EXPECT_EQ(values(host_.load(path).parameters), last);
}

TEST_F(AveragesTest, AResumeContinuesThem) {
  for (const int64_t window : {0, 4}) {
    const auto options = [&] { return averaged(window == 0 ? 0.75 : 1, window, 2, 4); };
    TrainOptions whole = options();
    train(whole);
    for (int stop = 1; stop <= 12; ++stop) {
      const TemporaryFolder folder;
      TrainOptions first = options();
      first.checkpoint.emplace();
      first.checkpoint->folder = folder.file("saves");
      int done = 0;
      first.handler = [&](const Event& event) {
        if (event.kind() == TN_END_ITERATION && ++done == stop) event.stop();
      };
      train(first);
      TrainOptions rest = options();
      rest.checkpoint = first.checkpoint;
      rest.checkpoint->start = TN_START_RESUME;
      train(rest);
      EXPECT_EQ(values(rest), values(whole)) << stop;
      EXPECT_EQ(values(rest.average->parameters), values(whole.average->parameters)) << window << ", " << stop;
      TrainOptions others = averaged(0.5, 0, 2, 4), none = training();
      others.checkpoint = none.checkpoint = rest.checkpoint;
      const Floats before = values(others.average->parameters);
      EXPECT_THAT(refusal([&] { train(others); }, TN_INVALID), HasSubstr("average.decay: "));
      EXPECT_EQ(values(others.average->parameters), before);
      EXPECT_THAT(refusal([&] { train(none); }, TN_INVALID), HasSubstr("average: in the checkpoint"));
    }
  }
}

TEST_F(AveragesTest, BadOptionsAreRefused) {
  const auto refused = [&](const std::function<void(TrainOptions&)>& change, tn_status code = TN_INVALID) {
    TrainOptions options = averaged(1, 0, 0);
    change(options);
    return refusal([&] { train(options); }, code);
  };
  EXPECT_THAT(refused([](TrainOptions& o) { o.average->decay = -0.5; }), HasSubstr("decay is -0.5; expected"));
  EXPECT_THAT(refused([](TrainOptions& o) { o.average->decay = 1.5; }), HasSubstr("decay is 1.5"));
  EXPECT_THAT(refused([](TrainOptions& o) { o.average->decay = NAN; }), HasSubstr("decay is nan"));
  EXPECT_THAT(refused([](TrainOptions& o) { o.average->window = -1; }), HasSubstr("window is -1"));
  EXPECT_THAT(refused([](TrainOptions& o) { o.average->begin = -1; }), HasSubstr("begin is -1"));
  EXPECT_THAT(refused([](TrainOptions& o) { o.average->window = 3, o.average->decay = 0.5; }),
              HasSubstr("one of them"));
  EXPECT_THAT(refused([](TrainOptions& o) { o.average->parameters = o.parameters; }), HasSubstr("another set"));
  EXPECT_THAT(refused([](TrainOptions& o) { o.average->parameters = Parameters(); }, TN_MISUSE), HasSubstr("not set"));
  const Layer wide = host_.layer("fc", {x_}, {{"size", 2}}, "line"), other = host_.layer("fc", {x_}, {{"size", 1}});
  EXPECT_THAT(refused([&](TrainOptions& o) { o.average->parameters = host_.parameters({wide}, 1); }),
              HasSubstr("expected [1, 1], the set for the values has [1, 2]"));
  EXPECT_THAT(refused([&](TrainOptions& o) {
                o.average->parameters = host_.parameters({cost_, other}, 1);
              }),
              HasSubstr("which the training does not have"));
  EXPECT_THAT(refused([&](TrainOptions& o) { o.average->parameters = host_.declare({cost_}); }, TN_MISUSE),
              HasSubstr("value"));
}

}  // namespace
}  // namespace tenon_tests

// SPDX-License-Identifier: Apache-2.0
#include "host/training/updater_options.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "core/error.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

double factor(const Values& attributes, uint64_t step) {
  Values given = attributes;
  const UpdaterOptions options = UpdaterOptions::take(given);
  EXPECT_TRUE(given.empty());
  return options.schedule.factor(step);
}

TEST(Schedules, FollowTheirFormulas) {
  EXPECT_EQ(factor({}, 1), 1);
  EXPECT_EQ(factor({}, 1000000), 1);
  const Values step{{"schedule.type", "step"}, {"schedule.steps", int64_t{10}}, {"schedule.rate", 0.5}};
  EXPECT_EQ(factor(step, 9), 1);
  EXPECT_EQ(factor(step, 10), 0.5);
  EXPECT_EQ(factor(step, 35), 0.125);
  const Values exponential{{"schedule.type", "exponential"}, {"schedule.steps", int64_t{10}}, {"schedule.rate", 0.5}};
  EXPECT_DOUBLE_EQ(factor(exponential, 5), std::sqrt(0.5));
  const Values polynomial{{"schedule.type", "polynomial"},
                          {"schedule.steps", int64_t{100}},
                          {"schedule.power", 2.0},
                          {"schedule.end", 0.1}};
  EXPECT_DOUBLE_EQ(factor(polynomial, 50), 0.1 + 0.9 * 0.25);
  EXPECT_DOUBLE_EQ(factor(polynomial, 500), 0.1);
  const Values cosine{{"schedule.type", "cosine"}, {"schedule.steps", int64_t{100}}};
  EXPECT_DOUBLE_EQ(factor(cosine, 25), 0.5 * (1 + std::cos(std::numbers::pi / 4)));
  EXPECT_NEAR(factor(cosine, 100), 0, 1e-15);
}

TEST(Schedules, WarmUpComesFirst) {
  const Values given{{"schedule.type", "cosine"}, {"schedule.steps", int64_t{100}}, {"schedule.warm_up", int64_t{4}}};
  EXPECT_DOUBLE_EQ(factor(given, 1), 0.25);
  EXPECT_DOUBLE_EQ(factor(given, 4), 1);
  EXPECT_DOUBLE_EQ(factor(given, 54), 0.5);
}

TEST(Schedules, MistakesAreNamed) {
  const auto message = [](Values given) {
    try {
      (void)UpdaterOptions::take(given);
    } catch (const Error& error) {
      return error.message();
    }
    return std::string();
  };
  EXPECT_NE(message({{"schedule.type", "cosin"}}).find("did you mean \"cosine\"?"), std::string::npos);
  EXPECT_NE(message({{"schedule.type", "step"}}).find("schedule.steps"), std::string::npos);
  EXPECT_NE(message({{"clip_norm", -1.0}}).find("clip_norm"), std::string::npos);
  EXPECT_NE(message({{"l1", "much"}}).find("\"l1\""), std::string::npos);
  for (const char* name : {"clip_norm", "clip_value", "l1", "l2", "schedule.rate"}) {
    const std::string expected = text("attribute \"", name, "\": expected a number of at least 0, got ");
    EXPECT_EQ(message({{name, std::nan("")}}), expected + "nan");
    EXPECT_EQ(message({{name, INFINITY}}), expected + "inf");
  }
}

// with_options reuses a scalar that the program already has.
TEST(Options, ShareTheProgramsScalars) {
  ProgramWriter writer;
  const int32_t parameter = writer.input(TN_FULL), gradient = writer.input(TN_FULL);
  const int32_t decay = writer.input(TN_SCALAR);
  writer.output(writer.apply(TN_OP_SUB, parameter, writer.apply(TN_OP_MUL, gradient, decay)));
  const Program program = writer.finish();
  UpdaterOptions options;
  options.l2 = 0.1;
  std::vector<int32_t> scalars = {TN_SCALAR_DECAY_MULTIPLIER};
  EXPECT_EQ(with_options(program, options, 0, scalars).inputs.size(), 3u);
  EXPECT_EQ(scalars, std::vector<int32_t>{TN_SCALAR_DECAY_MULTIPLIER});
  options.clip_norm = 1;
  EXPECT_EQ(with_options(program, options, 0, scalars).inputs.size(), 4u);
  EXPECT_EQ(scalars, (std::vector<int32_t>{TN_SCALAR_DECAY_MULTIPLIER, kScalarClip}));
}

}  // namespace
}  // namespace tenon_tests

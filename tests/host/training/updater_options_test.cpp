// SPDX-License-Identifier: Apache-2.0
#include "host/training/updater_options.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

TEST(Options, MistakesAreNamed) {
  const auto message = [](Values given) {
    try {
      (void)UpdaterOptions::take(given);
    } catch (const Error& error) {
      return error.message();
    }
    return std::string();
  };
  EXPECT_NE(message({{"schedule.type", "step"}}).find("schedule.steps"), std::string::npos);
  EXPECT_NE(message({{"clip_norm", -1.0}}).find("clip_norm"), std::string::npos);
  EXPECT_NE(message({{"l1", "much"}}).find("\"l1\""), std::string::npos);
  for (const char* name : {"clip_norm", "clip_value", "l1", "l2"}) {
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

// The program under limits of its address space: it succeeds, or ends within a minute with a message.
// SPDX-License-Identifier: Apache-2.0
#include "tests/host/cli/program.h"
#include "tests/support/sanitized.h"

namespace tenon_tests {
namespace {

class MemoryTest : public ProgramTest {};

TEST_F(MemoryTest, TrainingEndsUnderAnyLimit) {
  if (sanitized()) GTEST_SKIP() << "sanitizers need more address space than the limits allow";
  bool succeeded = false, failed = false;
  for (int mebibytes = 16; mebibytes <= 200; mebibytes += 8) {
    const Outcome outcome =
        shell("ulimit -v " + std::to_string(1024 * mebibytes) +
              "; exec timeout --kill-after=5 60 \"$TENON\" train job.toml --threads 2 --no-save --quiet");
    EXPECT_TRUE(outcome.exit == 0 || outcome.exit == 71)
        << mebibytes << " MiB: exit code " << outcome.exit << ", " << outcome.error;
    EXPECT_EQ(outcome.exit == 0, outcome.error.empty()) << mebibytes << " MiB: " << outcome.error;
    succeeded = succeeded || outcome.exit == 0;
    failed = failed || outcome.exit == 71;
  }
  EXPECT_TRUE(succeeded) << "200 MiB are enough for 60 images";
  EXPECT_TRUE(failed) << "16 MiB are too few for the plugins alone";
}

}  // namespace
}  // namespace tenon_tests

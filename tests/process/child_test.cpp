// SPDX-License-Identifier: Apache-2.0
#include "process/child.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>
#include <utility>

#include "base/files.h"
#include "tests/support/child.h"

namespace tenon_tests {

namespace {

TEST(Child, EndsAfterItsWork) {
  EXPECT_EQ(Child([] {}).wait(), 0);
  EXPECT_EQ(WEXITSTATUS(Child([] { throw std::runtime_error("x"); }).wait()), 1);
  Child child([] { pause(); });
  EXPECT_EQ(kill(child.id(), 0), 0);
  EXPECT_FALSE(child.has_ended());
  child.send(SIGTERM);
  EXPECT_EQ(WTERMSIG(child.wait()), SIGTERM);
  EXPECT_TRUE(child.has_ended());
  EXPECT_EQ(WTERMSIG(child.wait()), SIGTERM) << "once more";
}

TEST(Child, IsKilledWithItsObject) {
  pid_t id = 0;
  {
    Child first([] { pause(); });
    const Child moved = std::move(first);
    id = moved.id();
    EXPECT_EQ(kill(id, 0), 0);
  }
  EXPECT_NE(kill(id, 0), 0);
}

TEST(RunChild, TellsTextAndEnd) {
  const auto writes = [](int to) { tenon::base::write_all(to, std::string(100000, 'x')); };
  const ChildEnd end = run_child(writes, 60);
  EXPECT_TRUE(end.well());
  EXPECT_EQ(end.text.size(), 100000u);
  EXPECT_EQ(run_child([](int) { _exit(3); }, 60).how(), "exit code 3");
  EXPECT_EQ(run_child([](int) { raise(SIGKILL); }, 60).code(), 128 + SIGKILL);
  EXPECT_TRUE(run_child([](int) { pause(); }, 1).timed_out);
  const auto silent = [](int to) {
    tenon::base::write_all(to, "a");
    pause();
  };
  const ChildEnd late = run_child(silent, 0, 1);
  EXPECT_TRUE(late.timed_out);
  EXPECT_EQ(late.text, "a");
}

TEST(Shell, GivesTheOutputOfACommand) {
  EXPECT_EQ(shell("printf abc; exit 4").text, "abc");
  EXPECT_EQ(shell("printf abc; exit 4").code(), 4);
  EXPECT_EQ(run_child([](int) { become({"/nowhere"}); }, 60).code(), 99);
}

}  // namespace

}  // namespace tenon_tests

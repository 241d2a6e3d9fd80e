// Verbs in a child process. SPDX-License-Identifier: Apache-2.0
#include "host/cli/child.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <csignal>
#include <system_error>

#include "host/cli/cli.h"

namespace tenon_tests {

namespace {

using namespace tenon::cli;
using testing::HasSubstr;

TEST(ChildTest, TellsHowAVerbEnded) {
  EXPECT_EQ(run_verb_in_child(10, [] { return 3; }), 3);
  const auto failed = [](const std::function<int()>& verb, unsigned seconds = 10) {
    try {
      (void)run_verb_in_child(seconds, verb);
    } catch (const Failure& failure) {
      return std::to_string(failure.exit()) + " " + failure.what();
    }
    return std::string();
  };
  EXPECT_EQ(failed([]() -> int { throw Failure(kBadData, "why"); }), "65 why");
  EXPECT_EQ(failed([]() -> int { _exit(9); }),
            "70 the process that ran the code of plugins ended early, by exit code 9");
  EXPECT_THAT(failed([]() -> int {
                std::raise(SIGKILL);
                return 0;
              }),
              HasSubstr("by signal 9"));
  EXPECT_THAT(failed(
                  []() -> int {
                    for (;;) pause();
                  },
                  1),
              HasSubstr("by exit code 70"));
}

TEST(ChildTest, WhatTheSystemRefusesIsNoInternalError) {
  const Ending ending =
      ending_of(std::make_exception_ptr(std::system_error(EAGAIN, std::generic_category(), "cannot start a process")));
  EXPECT_EQ(ending.exit, kIo);
  EXPECT_EQ(ending.message, "cannot start a process: Resource temporarily unavailable");
}

}  // namespace
}  // namespace tenon_tests

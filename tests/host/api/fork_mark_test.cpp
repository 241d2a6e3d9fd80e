// Hosts after fork: calls on the child's copy are refused, those of the parent go on.
// SPDX-License-Identifier: Apache-2.0
#include "host/api/host/fork_mark.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/support/child.h"
#include "tests/support/fashion.h"

namespace tenon_tests {

namespace {

// Runs `check` in a child of this process; returns whether it was true.
bool in_child(const std::function<bool()>& check) {
  const auto work = [&](int) {
    if (!check()) _exit(1);
  };
  return run_child(work, 60).well();
}

TEST(ForkMark, TellsAChildAndItsChildren) {
  const tenon::host::ForkMark mark;
  EXPECT_FALSE(mark.in_child());
  EXPECT_TRUE(in_child([&] { return mark.in_child(); }));
  EXPECT_TRUE(in_child([&] { return mark.in_child() && in_child([&] { return mark.in_child(); }); }));
  EXPECT_TRUE(in_child([] { return !tenon::host::ForkMark().in_child(); }));
  EXPECT_FALSE(mark.in_child());
}

TEST(ForkMark, AHostOfTheParentIsMisuseInTheChild) {
  const Host host = make_host(1);
  EXPECT_TRUE(in_child([&] {
    try {
      (void)host.count();
    } catch (const Error& error) {
      return error.code() == TN_MISUSE && std::string(error.what()).find("before fork()") != std::string::npos;
    }
    return false;
  }));
  EXPECT_NO_THROW((void)host.count());
}

}  // namespace
}  // namespace tenon_tests

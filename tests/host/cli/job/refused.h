// The message of a job that is refused. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "host/cli/cli.h"

namespace tenon_tests {

// Calls what must fail with this exit code, and returns its message.
template <typename Call>
std::string refused_with(int exit, Call call) {
  try {
    call();
  } catch (const tenon::cli::Failure& failure) {
    EXPECT_EQ(failure.exit(), exit) << failure.what();
    return failure.what();
  }
  ADD_FAILURE() << "no failure";
  return "";
}

}  // namespace tenon_tests

// The error of a call of the public API that must be refused. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <tenon/tenon.hpp>

namespace tenon_tests {

// Runs `work` and returns its error; fails the test if there is none.
inline tenon::Error refused(const std::function<void()>& work) {
  try {
    work();
  } catch (const tenon::Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was refused";
  return {TN_OK, "nothing", {}, {}};
}

}  // namespace tenon_tests

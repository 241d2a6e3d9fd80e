// The test device "far" is a device by the rules of the conformance kit. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <tenon/check_gtest.hpp>

#include "tests/support/paths.h"

namespace tenon_tests {

TEST(Far, PassesAllChecks) {
  tenon::check::Options options;
  options.file = test_plugin_folder() + "/devices/far.so";
  options.plugin_paths = {plugin_folder()};
  options.seconds = 120;
  static_cast<void>(tenon::check::expect_conforming(options));
}

}  // namespace tenon_tests

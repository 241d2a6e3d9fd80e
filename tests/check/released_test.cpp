// The kit and `tenon plugins seal` take the plugins of every version that the host runs.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <tenon/check.hpp>

#include "tests/support/paths.h"

namespace tenon_tests {

namespace {

namespace fs = std::filesystem;
using tenon::check::Outcome;

// The checks of the file of an exhibit. Exhibits of a version offer the same types, so each is in a folder of its own.
void expect_sound(const fs::path& file) {
  SCOPED_TRACE(file);
  tenon::check::Options options;
  options.file = file;
  options.plugin_paths = {plugin_folder()};
  options.checks = {"note", "symbols", "entry"};
  const tenon::check::Report report = tenon::check::run(options);
  EXPECT_EQ(report.count(Outcome::kPassed), 3);
  for (const tenon::check::Result& result : report.results)
    EXPECT_EQ(result.outcome, Outcome::kPassed) << result.check << ": " << result.message;
}

TEST(ReleasedPlugins, PassTheChecksOfTheirFiles) {
  int files = 0;
  for (const char* version : {"0.2", "0.3"})
    for (const auto& entry : fs::directory_iterator(fs::path(source_folder()) / "tests/museum" / version))
      if (entry.path().extension() == ".so") expect_sound(entry.path()), ++files;
  EXPECT_GE(files, 6);
}

}  // namespace

}  // namespace tenon_tests

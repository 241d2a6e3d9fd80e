// The kit and `tenon plugins seal` take the plugins of every version that the host runs.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <tenon/check.hpp>
#include <vector>

#include "tests/support/paths.h"

namespace tenon_tests {

namespace {

namespace fs = std::filesystem;
using tenon::check::Outcome;

// The exhibits of these versions of the interface.
std::vector<fs::path> exhibits() {
  std::vector<fs::path> result;
  for (const char* version : {"0.2", "0.3"})
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(source_folder()) / "tests/museum" / version))
      if (entry.path().extension() == ".so") result.push_back(entry.path());
  return result;
}

// Exhibits of a version offer the same types, so the kit does not look in their folder, but for those of each kind.
tenon::check::Report checked(const fs::path& file, const std::vector<std::string>& checks) {
  tenon::check::Options options;
  options.file = file;
  options.plugin_paths = {plugin_folder()};
  if (file.parent_path().filename() == "kinds") options.plugin_paths.push_back(file.parent_path());
  options.checks = checks;
  options.cases = source_folder() + "/tests/check/museum_cases.toml";
  options.seconds = 120;  // other tests run beside this one
  return tenon::check::run(options);
}

TEST(ReleasedPlugins, PassTheChecksOfTheirFiles) {
  EXPECT_GE(exhibits().size(), 20U);
  for (const fs::path& file : exhibits()) {
    SCOPED_TRACE(file);
    const tenon::check::Report report = checked(file, {"note", "symbols", "entry"});
    EXPECT_EQ(report.count(Outcome::kPassed), 3);
    for (const tenon::check::Result& result : report.results)
      EXPECT_EQ(result.outcome, Outcome::kPassed) << result.check << ": " << result.message;
  }
}

// Each component works in a newer host, and in that for which it was built.
TEST(ReleasedPlugins, WorkInNewerAndOlderHosts) {
  for (const fs::path& file : exhibits()) {
    SCOPED_TRACE(file);
    for (const tenon::check::Result& result : checked(file, {"newer host", "older host"}).results) {
      if (result.component == "museum.now") continue;  // a layer of steps, with which museum.recall generates here
      EXPECT_EQ(result.outcome, Outcome::kPassed) << result.component << ", " << result.check << ": " << result.message;
    }
  }
}

}  // namespace

}  // namespace tenon_tests

// Every plugin of Tenon passes the conformance kit. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <tenon/check_gtest.hpp>
#include <vector>

#include "tests/support/paths.h"

namespace tenon_tests {

namespace {

namespace fs = std::filesystem;
using tenon::check::Outcome;

// All plugins of one folder: "layers", "updaters", "readers", "devices".
class OwnPlugins : public testing::TestWithParam<const char*> {};

TEST_P(OwnPlugins, PassAllChecks) {
  std::map<std::string, std::pair<int64_t, int64_t>> counts;  // by kind: checks that passed, comparisons
  for (const auto& entry : fs::directory_iterator(fs::path(plugin_folder()) / GetParam())) {
    tenon::check::Options options;
    options.file = entry.path().string();
    options.plugin_paths = {plugin_folder()};
    options.cases = source_folder() + "/tests/check/cases.toml";
    options.seconds = 120;  // other tests run beside this one
    for (const tenon::check::Result& result : tenon::check::expect_conforming(options).results) {
      counts[result.kind].first += result.outcome == Outcome::kPassed ? 1 : 0;
      counts[result.kind].second += result.comparisons;
    }
  }
  for (const auto& [kind, count] : counts)
    std::printf("[  CHECKS  ] %s: %lld passed, %lld comparisons\n", kind.c_str(), static_cast<long long>(count.first),
                static_cast<long long>(count.second));
}

INSTANTIATE_TEST_SUITE_P(Of, OwnPlugins, testing::Values("layers", "updaters", "readers", "devices"),
                         [](const auto& it) { return std::string(it.param); });

}  // namespace

}  // namespace tenon_tests

// Every plugin of Tenon passes the conformance kit. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <tenon/check_gtest.hpp>
#include <utility>
#include <vector>

#include "tests/support/paths.h"

namespace tenon_tests {

namespace {

namespace fs = std::filesystem;
using tenon::check::Outcome;

// How many components of a kind pass a check, "" for each, at least. What is not listed passes for all components of
// its kind: a check that begins to skip components is a failure here.
struct Least {
  const char* kind;
  const char* check;
  int64_t passed;
};
constexpr Least kLeast[] = {
    {"cost", "batch", 25},                                       // one couples samples
    {"cost", "gradient", 25},                                    // of one it is not the derivative, on purpose
    {"cost", "guard pages", 2},                                  // those with native kernels
    {"cost", "hosts", 12},                                       // those with attributes
    {"cost", "request", 3},                                      // those with parameters
    {"cost", "run", 2},                                          // those with native kernels
    {"cost", "sums", 0},                                         // of metrics
    {"device", "older host", 0},                                 // ours require this version
    {"kernel", "batch", 7},                                      // not those that couple samples, nor those of metrics
    {"kernel", "body", 2},                                       // those of layers with a body
    {"kernel", "draws", 0},                                      // none of ours draws
    {"kernel", "float32", 10},                                   // not those of metrics
    {"kernel", "gradient", 5},                                   // those with a derivative
    {"kernel", "hosts", 7},                                      // those with attributes
    {"kernel", "request", 0},                                    // none of ours has parameters
    {"layer", "batch", 157},                                     // five couple samples
    {"layer", "gradient", 150},                                  // those with a derivative
    {"layer", "guard pages", 8},                                 // those with native kernels
    {"layer", "hosts", 91},                                      // those with attributes
    {"layer", "own memory", 152}, {"layer", "request", 27},      // those with parameters
    {"layer", "run", 8},                                         // those with native kernels
    {"layer", "sums", 0},                                        // of metrics
    {"metric", "batch", 0},                                      // has sums in its place
    {"metric", "float32", 0},                                    // computes in fp64
    {"metric", "gradient", 0},    {"metric", "guard pages", 3},  // those with native kernels
    {"metric", "hosts", 11},                                     // those with attributes
    {"metric", "request", 0},     {"metric", "run", 3},          // those with native kernels
    {"provider", "", 0},          // leaves convolutions as small as the kit's to the device
    {"reader", "damage", 5},      // of one no attribute names a file
    {"reader", "older host", 0},  // ours require this version
    {"updater", "rows", 13},      // two update whole tensors
};

// The kinds of components in a folder, and how many there are at least.
struct Folder {
  const char* name;
  std::map<std::string, int64_t> components;
};

// Runs all checks on a plugin.
tenon::check::Report report_of(const fs::path& file) {
  tenon::check::Options options;
  options.file = file.string();
  options.plugin_paths = {plugin_folder()};
  options.cases = source_folder() + "/tests/check/cases.toml";
  options.seconds = 120;  // other tests run beside this one
  return tenon::check::expect_conforming(options);
}

class OwnPlugins : public testing::TestWithParam<Folder> {
 protected:
  struct Counts {
    int64_t run = 0, passed = 0, comparisons = 0;
  };

  // Runs all checks on the plugins of the folder. Those of devices that this machine lacks are left out.
  void run() {
    for (const auto& entry : fs::directory_iterator(fs::path(plugin_folder()) / GetParam().name)) {
      const tenon::check::Report report = report_of(entry.path());
      for (const tenon::check::Result& result : report.results) {
        if (result.outcome == Outcome::kSkipped && result.component == "cuda") continue;
        Counts& counts = counts_[{result.kind, result.check}];
        ++counts.run;
        counts.passed += result.outcome == Outcome::kPassed ? 1 : 0;
        counts.comparisons += result.comparisons;
      }
    }
  }

  std::map<std::pair<std::string, std::string>, Counts> counts_;  // by kind and check
};

TEST_P(OwnPlugins, PassAllChecks) {
  run();
  std::map<std::string, int64_t> components;
  for (const auto& [which, counts] : counts_) {
    const auto& [kind, check] = which;
    components[kind] = std::max(components[kind], counts.run);
    const auto* const least = std::find_if(std::begin(kLeast), std::end(kLeast), [&](const Least& each) {
      return kind == each.kind && (check == each.check || *each.check == '\0');
    });
    EXPECT_GE(counts.passed, least == std::end(kLeast) ? counts.run : least->passed) << kind << ", check " << check;
    EXPECT_GE(counts.comparisons, counts.passed) << kind << ", check " << check << " compares nothing";
  }
  for (const auto& [kind, count] : components) {
    const auto known = GetParam().components.find(kind);
    ASSERT_NE(known, GetParam().components.end()) << kind;
    EXPECT_GE(count, known->second) << kind;
    for (const tenon::check::Listed& listed : tenon::check::list_checks())
      EXPECT_TRUE(listed.kind != kind || counts_.count({kind, listed.check}) == 1)
          << kind << ", check " << listed.check;
  }
  EXPECT_EQ(components.size(), GetParam().components.size());
}

INSTANTIATE_TEST_SUITE_P(
    Of, OwnPlugins,
    testing::Values(Folder{"layers", {{"plugin", 28}, {"layer", 162}, {"cost", 26}, {"metric", 21}, {"kernel", 13}}},
                    Folder{"updaters", {{"plugin", 6}, {"updater", 15}}},
                    Folder{"readers", {{"plugin", 6}, {"reader", 6}}},
                    Folder{"devices", {{"plugin", 2}, {"device", 1}, {"provider", 1}}}),
    [](const auto& it) { return std::string(it.param.name); });

// A communicator, which a build may lack, and the checks that it skips.
struct Communicator {
  const char* name;
  std::set<std::string> skipped;
};

class OwnCommunicators : public testing::TestWithParam<Communicator> {};

TEST_P(OwnCommunicators, PassAllChecks) {
  const std::string name = GetParam().name;
  const fs::path file = fs::path(plugin_folder()) / "comms" / (name + ".so");
  if (!fs::exists(file)) GTEST_SKIP() << "no communicator " << name << " in this build";
  std::set<std::string> skipped, seen;
  const tenon::check::Report report = report_of(file);
  for (const tenon::check::Result& result : report.results) {
    if (result.outcome == Outcome::kSkipped) skipped.insert(result.check);
    if (result.kind == "comm") seen.insert(result.check);
  }
  EXPECT_EQ(skipped, GetParam().skipped);
  for (const tenon::check::Listed& listed : tenon::check::list_checks())
    EXPECT_TRUE(listed.kind != "comm" || seen.count(listed.check) == 1) << listed.check;
}

// The kit starts no launcher, so it opens worlds of one over MPI; and drafts have no older host.
const std::set<std::string> kOfSeveral = {"begin",   "cancel",     "close", "events", "loss",    "messages",
                                          "missing", "older host", "order", "room",   "silence", "strangers"};

INSTANTIATE_TEST_SUITE_P(Of, OwnCommunicators,
                         testing::Values(Communicator{"mpich", kOfSeveral}, Communicator{"openmpi", kOfSeveral},
                                         Communicator{"zmq", {"older host"}}),
                         [](const auto& it) { return std::string(it.param.name); });

}  // namespace

}  // namespace tenon_tests

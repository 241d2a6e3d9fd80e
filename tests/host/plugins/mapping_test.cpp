// A job maps only the plugins that it uses; listing and searching do not map any. The test is a program of its own,
// because plugins are never unmapped. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "tests/support/fashion.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

// Returns the plugins in /proc/self/maps, as "<kind>/<name>".
std::set<std::string> mapped() {
  std::set<std::string> result;
  std::ifstream maps("/proc/self/maps");
  const std::string folder = std::filesystem::canonical(tenon_tests::plugin_folder()).string() + "/";
  for (std::string line; std::getline(maps, line);)
    if (const size_t at = line.find(folder); at != std::string::npos) {
      const std::string file = line.substr(at + folder.size());
      result.insert(file.substr(0, file.find(".so")));
    }
  return result;
}

TEST(Mapping, OnlyWhatIsUsed) {
  const Host host = make_host(1);
  EXPECT_THAT(host.plugins(), testing::HasSubstr("tenon.cpu"));
  EXPECT_THROW(static_cast<void>(host.layer("relo", {}, {})), Error);
  EXPECT_THROW(static_cast<void>(host.updater("adaam", {})), Error);
  EXPECT_THAT(mapped(), testing::IsEmpty()) << "listing and suggestions must not map plugins";

  const Perceptron model = perceptron(host, 8);
  TrainOptions options;
  options.outputs = model.outputs();
  options.parameters = host.parameters(options.outputs, 1);
  options.updater = host.updater("sgd", {});
  options.reader = fashion(host, "t10k", 64, 32, 1);
  train(options);
  EXPECT_THAT(mapped(),
              testing::UnorderedElementsAre("devices/cpu", "layers/fc", "layers/activations", "layers/cross_entropy",
                                            "layers/accuracy", "updaters/sgd", "readers/idx"));
}

}  // namespace
}  // namespace tenon_tests

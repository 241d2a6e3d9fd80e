// Models of thousands of layers: the time to compile them is proportional to their length.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <vector>

#include "tests/support/fashion.h"
#include "tests/support/sanitized.h"

namespace tenon_tests {

using namespace tenon;

namespace {

// Returns the cost of a chain of `length` layers that all have parameters before them.
Layer chain(const Host& host, const std::string& type, int length) {
  DataOptions x, y;
  x.name = "x", x.shape = {4};
  y.name = "y", y.shape = {4};
  Layer last = host.layer("fc", {host.data(x)}, {{"size", 4}});
  for (int i = 0; i < length; ++i) {
    if (type == "fc")
      last = host.layer("fc", {last}, {{"size", 4}, {"act", "relu"}});
    else if (type == "reshape")
      last =
          host.layer("reshape", {last}, {{"shape", i % 2 == 0 ? std::vector<int64_t>{2, 2} : std::vector<int64_t>{4}}});
    else
      last = host.layer(type, {last}, {});
  }
  return host.layer("square_error", {last, host.data(y)}, {});
}

// Returns the seconds of CPU time that making a machine takes: the least of three.
double seconds(const Host& host, const std::string& type, int length) {
  const Layer cost = chain(host, type, length);
  const Parameters parameters = host.parameters({cost}, 1);
  MachineOptions options;
  options.max_samples = 2, options.training = true;
  std::clock_t least = 0;
  for (int i = 0; i < 3; ++i) {
    const std::clock_t begin = std::clock();
    const Machine machine = host.machine(parameters, {cost}, options);
    const std::clock_t taken = std::max<std::clock_t>(std::clock() - begin, 1);
    least = i == 0 ? taken : std::min(least, taken);
  }
  return static_cast<double>(least) / CLOCKS_PER_SEC;
}

// 8 times as many layers take about 8 times as long; quadratic work would take 64 times as long.
TEST(LongModels, AreCompiledInLinearTime) {
  if (sanitized()) GTEST_SKIP() << "sanitizers distort the time of allocations";
  const Host host = make_host(1);
  for (const std::string type : {"fc", "relu", "layer_norm", "reshape"})
    EXPECT_LT(seconds(host, type, 8000), 24 * seconds(host, type, 1000)) << type;
}

}  // namespace
}  // namespace tenon_tests

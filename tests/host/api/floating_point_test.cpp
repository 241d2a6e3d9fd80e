// Denormals: machines and updaters keep them, for every number of threads, but states of updaters do not; and the
// application's mode is kept.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cfenv>
#include <limits>
#include <vector>

#include "tests/support/fashion.h"

namespace tenon_tests {

using namespace tenon;

namespace {

constexpr float kSmallest = std::numeric_limits<float>::min();  // half of it is a denormal

// The mode of an application that rounds downward and keeps denormals, while it lives.
class OwnMode {
 public:
  OwnMode() { EXPECT_EQ(std::fesetround(FE_DOWNWARD), 0); }
  ~OwnMode() {
    const volatile float smallest = kSmallest, denormal = std::numeric_limits<float>::denorm_min();
    EXPECT_EQ(std::fegetround(), FE_DOWNWARD);
    EXPECT_GT(smallest / 2, 0.0F);
    EXPECT_GT(denormal * 0x1p30F, 0.0F);
    std::fesetround(FE_TONEAREST);
  }
  OwnMode(const OwnMode&) = delete;
  OwnMode& operator=(const OwnMode&) = delete;
};

// Returns `size` numbers, each half of the smallest normal one, as a machine computes them.
std::vector<float> halves(int threads, int64_t size) {
  const Host host = make_host(threads);
  DataOptions x;
  x.name = "x", x.shape = {size};
  const Layer half = host.layer("scale_shift", {host.data(x)}, {{"scale", 0.5}});
  const Machine machine = host.machine(host.parameters({half}, 1), {half}, {});
  const std::vector<float> values(static_cast<size_t>(size), kSmallest);
  {
    const OwnMode mode;
    machine.forward({{"x", {TN_F32, {1, size}, values.data()}}});
  }
  const auto* const result = static_cast<const float*>(machine.output(half).data);
  return {result, result + size};
}

TEST(FloatingPoint, IsThatOfComputationInMachines) {
  for (const int64_t size : {1, 100, 300'000})  // one task, and many
    for (const int threads : {1, 2, 3})
      EXPECT_EQ(halves(threads, size), std::vector<float>(static_cast<size_t>(size), kSmallest / 2))
          << threads << " threads";
}

// Of a weight of 1.5 times the smallest normal number, one update leaves a quarter: a denormal.
TEST(FloatingPoint, IsThatOfComputationInUpdaters) {
  for (const int threads : {1, 2, 3}) {
    const Host host = make_host(threads);
    DataOptions x, y;
    x.name = "x", x.shape = {4};
    y.name = "y", y.shape = {4};
    const Layer cost = host.layer(
        "square_error", {host.layer("fc", {host.data(x)}, {{"size", 4}, {"bias", false}}, "fc"), host.data(y)}, {});
    const Parameters parameters = host.parameters({cost}, 1);
    const std::vector<float> weights(16, 1.5F * kSmallest), zeros(4, 0);
    parameters.set("fc.weight", {TN_F32, {4, 4}, weights.data()});
    MachineOptions options;
    options.training = true;
    const Machine machine = host.machine(parameters, {cost}, options);
    const Updater updater = host.updater("sgd", {{"learning_rate", 1}, {"l2", 0.75}});
    {
      const OwnMode mode;
      machine.forward({{"x", {TN_F32, {1, 4}, zeros.data()}}, {"y", {TN_F32, {1, 4}, zeros.data()}}});
      machine.backward();
      updater.update(machine);
    }
    const Array after = parameters.get("fc.weight");
    for (int i = 0; i < 16; ++i)
      EXPECT_EQ(static_cast<const float*>(after.data)[i], 0.75F * (kSmallest / 2)) << threads;
  }
}

// One weight and a velocity of which a quarter is kept: 3 times the smallest normal number, then a denormal, which
// becomes 0 behind the update that it was computed for.
TEST(FloatingPoint, StatesThatDecayReachZero) {
  const Host host = make_host(1);
  DataOptions x, y;
  x.name = "x", x.shape = {1};
  y.name = "y", y.shape = {1};
  const Layer cost = host.layer(
      "square_error", {host.layer("fc", {host.data(x)}, {{"size", 1}, {"bias", false}}, "fc"), host.data(y)}, {});
  const Parameters parameters = host.parameters({cost}, 1);
  const float zero = 0, one = 1;
  parameters.set("fc.weight", {TN_F32, {1, 1}, &zero});
  MachineOptions options;
  options.training = true;
  const Machine machine = host.machine(parameters, {cost}, options);
  const Updater updater = host.updater("sgd", {{"learning_rate", 1}, {"momentum", 0.25}});
  const auto updated = [&](float target) {
    machine.forward({{"x", {TN_F32, {1, 1}, &one}}, {"y", {TN_F32, {1, 1}, &target}}});
    machine.backward();
    updater.update(machine);
    return *static_cast<const float*>(parameters.get("fc.weight").data);
  };
  const float first = updated(1.5F * kSmallest);
  ASSERT_EQ(first, 3 * kSmallest);
  const float second = updated(first);  // no gradient
  EXPECT_EQ(second, 1.25F * first);
  EXPECT_EQ(updated(second), second);
}

}  // namespace
}  // namespace tenon_tests

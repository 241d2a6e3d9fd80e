// The kernel of examples/gpu_kernel, which a plugin brings for the device "cuda", on an emulated GPU.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <tenon/tenon_machine.hpp>
#include <vector>

#include "tests/devices/emulated_driver.h"
#include "tests/support/paths.h"

namespace tenon_tests {

namespace {

using namespace tenon;
using testing::HasSubstr;
using testing::Not;

struct Companded {
  std::vector<float> out, gradient;
  std::string plan;
};

class CudaKernel : public testing::Test {
 protected:
  void SetUp() override {
    if (!driver_) GTEST_SKIP() << "no emulated GPU";
  }

  // Compands 3 samples of 700 numbers on a device, three times, so that a captured step is replayed.
  Companded compand(const std::string& device) {
    HostOptions host_options{2, {plugin_folder(), TENON_GPU_KERNEL_FOLDER}, nullptr, {}};
    host_options.log = [&](int, const char* message) { log_ += message + std::string("\n"); };
    const Host host(host_options);
    DataOptions input;
    input.name = "x", input.shape = {700};
    const Layer x = host.data(input);
    const Layer out = host.layer("example.mu_law", {x}, {{"mu", 100.0}}, "out");
    const Layer cost = host.layer("sum_cost", {host.layer("square", {out})}, {}, "cost");
    MachineOptions options;
    options.max_samples = 4, options.training = true, options.device = device;
    options.flags = TN_MACHINE_DATA_GRADIENTS;
    const Machine machine = host.machine(host.parameters({out, cost}, 1), {out, cost}, options);
    std::vector<float> values;
    for (int i = 0; i < 2100; ++i) values.push_back(std::sin(0.1F + static_cast<float>(i)));
    Companded result;
    for (int step = 0; step < 3; ++step) {
      machine.forward({{"x", {TN_F32, {3, 700}, values.data()}}});
      result.out = floats_of(machine.output(out));
      machine.backward();
      result.gradient = floats_of(data_gradient(machine, "x"));
    }
    result.plan = machine.plan();
    return result;
  }
  static std::vector<float> floats_of(const Array& array) {
    const auto* const first = static_cast<const float*>(array.data);
    return {first, first + array.count()};
  }
  static void expect_near(const std::vector<float>& left, const std::vector<float>& right) {
    ASSERT_EQ(left.size(), right.size());
    for (size_t i = 0; i < left.size(); ++i) ASSERT_NEAR(left[i], right[i], 4e-7 * (1 + std::abs(right[i]))) << i;
  }

  std::optional<EmulatedDriver> driver_ = EmulatedDriver::find();
  std::string log_;
};

TEST_F(CudaKernel, OfAPluginComputesWhatTheRecordedBodyDoes) {
  const Companded body = compand("cpu"), kernel = compand("cuda");
  EXPECT_THAT(body.plan, Not(HasSubstr("mu_law_cuda")));
  EXPECT_THAT(kernel.plan, HasSubstr("mu_law_cuda"));
  EXPECT_THAT(kernel.plan, HasSubstr("\"replays\""));
  expect_near(kernel.out, body.out);
  expect_near(kernel.gradient, body.gradient);
}

// Without its kernels the layer runs by its body.
TEST_F(CudaKernel, ThatCannotBeCompiledIsPassedOver) {
  setenv("TENON_MUTANT_OLD", "log1pf(a.mu * fabsf", 1);
  setenv("TENON_MUTANT_NEW", "log1pf(a.nothing * fabsf", 1);
  setenv("TENON_MUTANT_SEEN", "/dev/null", 1);
  const Companded body = compand("cpu"), other = compand("cuda");
  for (const char* name : {"TENON_MUTANT_OLD", "TENON_MUTANT_NEW", "TENON_MUTANT_SEEN"}) unsetenv(name);
  EXPECT_THAT(nlohmann::json::parse(other.plan).at("calls").dump(), Not(HasSubstr("mu_law_cuda")));
  expect_near(other.out, body.out);
}

}  // namespace

}  // namespace tenon_tests

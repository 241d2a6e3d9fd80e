// Captured steps and several devices of "cuda", on an emulated GPU. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tenon/tenon_machine.hpp>
#include <tenon/tenon_updater.hpp>

#include "tests/devices/device_under_test.h"
#include "tests/devices/emulated_driver.h"
#include "tests/support/far_models.h"
#include "tests/support/fashion.h"

namespace tenon_tests {

namespace {

class CudaCapture : public testing::Test {
 protected:
  void SetUp() override {
    if (!driver_) GTEST_SKIP() << "no emulated GPU";
  }
  void TearDown() override {
    if (driver_) driver_->fail_call(nullptr);
  }

  struct Outcome {
    Bytes bytes;
    uint64_t replays = 0;
  };

  static MachineOptions options(const std::vector<std::string>& devices) {
    MachineOptions options;
    options.max_samples = kSamples, options.training = true;
    if (devices.size() == 1)
      options.device = devices[0];
    else
      options.devices = devices;
    return options;
  }

  // Trains for some steps of different sizes.
  static Outcome train(const Host& host, const std::vector<std::string>& devices) {
    DenseModel model(host);
    const Parameters parameters = host.parameters(model.outputs(), 1);
    const Machine machine = host.machine(parameters, model.outputs(), options(devices));
    const Updater updater = host.updater("adam", {{"learning_rate", 0.1}});
    Outcome outcome;
    for (const int64_t samples : {6, 5, 6, 6, 5, 6, 3}) {
      machine.forward(model.feeds(outcome.bytes.size(), samples));
      machine.backward();
      add(outcome.bytes, machine.cost());
      updater.update(machine);
    }
    add_parameters(outcome.bytes, parameters);
    outcome.replays = nlohmann::json::parse(machine.plan()).value("replays", uint64_t{0});
    return outcome;
  }

  Outcome without_captures() {
    driver_->fail_call("cuStreamBeginCapture");
    Outcome outcome = train(host_, {"cuda"});
    driver_->fail_call(nullptr);
    EXPECT_EQ(outcome.replays, 0U);
    return outcome;
  }

  const std::optional<EmulatedDriver> driver_ = EmulatedDriver::find();
  Host host_ = make_host(2);
};

TEST_F(CudaCapture, ReplaysHaveTheBitsOfCalls) {
  const Outcome calls = without_captures(), replayed = train(host_, {"cuda"});
  EXPECT_EQ(calls.bytes, replayed.bytes);
  EXPECT_GE(replayed.replays, 2 * (3U + 1U));  // of 6 and of 5 samples; more if no call takes sizes from the host
}

// A step whose capture fails runs call by call, then and later, and nothing is lost.
TEST_F(CudaCapture, IsLeftOutWhereItFails) {
  const Outcome want = without_captures();
  for (const char* line : {"captured cuLaunchKernel", "cuStreamEndCapture", "cuGraphInstantiate", "cuGraphLaunch"}) {
    SCOPED_TRACE(line);
    const size_t held = driver_->used();
    driver_->fail_call(line);
    const Outcome got = train(host_, {"cuda"});
    EXPECT_EQ(got.bytes, want.bytes);
    EXPECT_EQ(got.replays, 0U);
    driver_->fail_call(nullptr);
    EXPECT_EQ(driver_->used(), held);
    EXPECT_GT(train(host_, {"cuda"}).replays, 0U) << "the device works as before";
  }
}

// What the driver is asked for in the first steps of a training: calls, a capture, then replays alone. No step
// allocates.
TEST_F(CudaCapture, AReplayIsOneCall) {
  DenseModel model(host_);
  const Parameters parameters = host_.parameters(model.outputs(), 1);
  const Machine machine = host_.machine(parameters, model.outputs(), options({"cuda"}));
  const auto calls = [&](uint64_t step) {
    driver_->clear_calls();
    machine.forward(model.feeds(step));
    return driver_->calls();
  };
  const auto count = [](const std::vector<std::string>& lines, const std::string& start) {
    return std::count_if(lines.begin(), lines.end(), [&](const auto& line) { return line.rfind(start, 0) == 0; });
  };
  const std::vector<std::string> eager = calls(0), capture = calls(1), replay = calls(2);
  // Sizes and seed, two feeds, the work, the results.
  const auto copy_in = testing::StartsWith("cuMemcpyHtoDAsync "), copy_out = testing::StartsWith("cuMemcpyDtoHAsync ");
  EXPECT_THAT(replay,
              testing::ElementsAre(copy_in, copy_in, copy_in, "cuGraphLaunch", copy_out, "cuStreamSynchronize"));
  const auto work = count(eager, "cuLaunchKernel") + count(eager, "cublasLtMatmul ");
  EXPECT_GT(work, 4);
  EXPECT_EQ(count(capture, "captured cuLaunchKernel") + count(capture, "captured cublasLtMatmul "), work);
  EXPECT_EQ(count(capture, "cuLaunchKernel"), 0);
  for (const auto& lines : {capture, replay})
    for (const char* call : {"cuMemAlloc", "cuMemFree", "captured cuMemAlloc", "cuModuleLoadData"})
      EXPECT_EQ(count(lines, call), 0) << call;
}

// Each device has a context of its own, which is current in the calls for it alone.
TEST_F(CudaCapture, SeveralDevicesGiveTheBitsOfOneWithAsManyShards) {
  setenv("TENON_EMULATED_DEVICES", "2", 1);
  const Outcome one = train(host_, {"cuda:0", "cuda:0"}), two = train(host_, {"cuda:0", "cuda:1"});
  EXPECT_EQ(one.bytes, two.bytes);
  EXPECT_GT(two.replays, 0U);
  const std::string all = [&] {
    try {
      static_cast<void>(train(host_, {"cuda:0", "cuda:2"}));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  }();
  unsetenv("TENON_EMULATED_DEVICES");
  EXPECT_THAT(all, testing::HasSubstr("device \"cuda:2\": unknown number 2; expected 0 to 1"));
}

}  // namespace

}  // namespace tenon_tests

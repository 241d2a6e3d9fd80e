// What the device "cuda" asks of the driver and of cublasLt in a step of a training, call by call. Runs on an emulated
// GPU with the cuBLAS for tests, skipped with another. SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <optional>
#include <sstream>
#include <string>
#include <tenon/tenon_machine.hpp>
#include <tenon/tenon_updater.hpp>

#include "tests/devices/emulated_driver.h"
#include "tests/support/far_models.h"
#include "tests/support/fashion.h"

namespace tenon_tests {

namespace {

// The calls, one a line: launches of kernels with blocks x threads, copies with their bytes, products with columns x
// rows x terms. A change of these lists is a change of what a step costs.

// Memory that the first step takes, and the parameters: the weights of "x" and of the bag, a bias, weights, a bias.
const std::string kStart = R"(
cuMemAllocHost
cuMemcpyHtoDAsync 4096
cuMemcpyDtoHAsync 32
cuStreamSynchronize
cuMemcpyHtoDAsync 10240
cuMemcpyDtoHAsync 32
cuStreamSynchronize
cuMemcpyHtoDAsync 512
cuMemcpyDtoHAsync 32
cuStreamSynchronize
cuMemcpyHtoDAsync 2048
cuMemcpyDtoHAsync 32
cuStreamSynchronize
cuMemcpyHtoDAsync 16
cuMemcpyDtoHAsync 32
cuStreamSynchronize
cuMemAllocHost
)";
// Sizes and seed; "x"; offsets, entries and numbers of the bag; labels.
const std::string kFeeds = R"(
cuMemcpyHtoDAsync 448
cuMemcpyHtoDAsync 1280
cuMemcpyHtoDAsync 328
cuMemcpyHtoDAsync 312
cuMemcpyHtoDAsync 156
cuMemcpyHtoDAsync 160
)";
const std::string kForward = R"(
cublasLtMatmul 128 x 40 x 8
cuLaunchKernel kernel0 1 x 256
cuLaunchKernel kernel1 1 x 256
cuLaunchKernel kernel2 8 x 256
cuLaunchKernel kernel0 8 x 256
cuLaunchKernel kernel0 8 x 256
cuLaunchKernel kernel0 5 x 256
cublasLtMatmul 4 x 40 x 128
cuLaunchKernel kernel0 5 x 256
cuLaunchKernel kernel0 1 x 256
cuLaunchKernel kernel1 1 x 256
)";
const std::string kBackward = R"(
cuLaunchKernel kernel0 1 x 256
cuLaunchKernel kernel0 5 x 256
cuLaunchKernel kernel1 1 x 256
cuLaunchKernel kernel2 1 x 256
cuLaunchKernel kernel3 1 x 256
cublasLtMatmul 128 x 40 x 4
cublasLtMatmul 4 x 128 x 40
cuLaunchKernel kernel0 4 x 256
cuLaunchKernel kernel1 1 x 256
cuLaunchKernel kernel2 5 x 256
cuLaunchKernel kernel0 8 x 256
cuLaunchKernel kernel0 8 x 256
cublasLtMatmul 128 x 8 x 40
cuLaunchKernel kernel2 1 x 256
cuLaunchKernel kernel3 1 x 256
cuLaunchKernel kernel0 1 x 256
cuLaunchKernel kernel4 1 x 256
cuLaunchKernel kernel5 1 x 256
cuLaunchKernel kernel6 1 x 256
cuLaunchKernel kernel7 1 x 256
cuLaunchKernel kernel8 8 x 256
cuLaunchKernel kernel9 1 x 256
)";
// The host waits, and gets the fault that a kernel may have found.
const std::string kWait = R"(
cuMemcpyDtoHAsync 32
cuStreamSynchronize
)";
// Memory and kernels that the first update takes.
const std::string kFirstUpdate = R"(
cuMemAlloc
cuModuleLoadData
cuModuleLoadData
)";
// The updater's numbers; the number of rows of the row-sparse gradient, for the kernels and for the host; the kernels;
// one wait.
const std::string kUpdate = R"(
cuMemcpyHtoDAsync 320
cuMemcpyDtoDAsync 8
cuMemcpyDtoHAsync 8
cuLaunchKernel kernel0 1 x 256
cuLaunchKernel kernel0 1 x 256
cuLaunchKernel kernel1 1 x 256
cuLaunchKernel kernel0 3 x 256
cuMemcpyDtoHAsync 32
cuStreamSynchronize
)";

const std::string kCapture = R"(
cuStreamBeginCapture
)";
const std::string kCaptured = R"(
cuStreamEndCapture
cuGraphInstantiate
cuGraphDestroy
)";
const std::string kReplay = R"(
cuGraphLaunch
cuMemcpyDtoHAsync 32
cuStreamSynchronize
)";

// One list of several; each begins with an empty line.
std::string joined(std::initializer_list<std::string> lists) {
  std::string all = "\n";
  for (const std::string& list : lists) all += list.substr(1);
  return all;
}

// The calls that capture those of the list.
std::string captured(const std::string& list) {
  std::istringstream from(list.substr(1));
  std::string lines = "\n";
  for (std::string line; std::getline(from, line);) lines += "captured " + line + "\n";
  return joined({kCapture, lines, kCaptured});
}

constexpr int64_t kRows = 40;

// A perceptron of 8 numbers and of a bag of 20 words, whose weights have a row-sparse gradient.
struct Model {
  explicit Model(const Host& host) {
    DataOptions words = floats("bag", {20});
    words.storage = TN_CSR;
    const Layers inputs = {host.data(floats("x", {8})), host.data(words)};
    const Layer hidden = host.layer("fc", inputs, {{"size", 128}, {"act", "relu"}}, "hidden");
    const Layer scores = host.layer("fc", {hidden}, {{"size", 4}}, "scores");
    cost = host.layer("cross_entropy", {scores, host.data(integers("label", 4))}, {{"from_logits", true}}, "cost");
    for (int64_t i = 0; i < kRows; ++i) {
      for (int64_t k = 0; k < i % 3; ++k) entries.push_back((7 * i + 5 * k) % 20);
      ends.push_back(static_cast<int64_t>(entries.size()));
      label.push_back(static_cast<int32_t>(i % 4));
    }
    numbers = drawn(entries.size(), 2);
  }
  [[nodiscard]] std::vector<Feed> feeds() const {
    return {{"x", {TN_F32, {kRows, 8}, x.data()}},
            {"bag", Array::sparse(kRows, 20, ends.data(), entries.data(), numbers.data())},
            {"label", {TN_I32, {kRows}, label.data()}}};
  }

  Layer cost;
  std::vector<float> x = drawn(kRows * 8, 1), numbers;
  std::vector<int64_t> ends = {0}, entries;
  std::vector<int32_t> label;
};

class CudaCalls : public testing::Test {
 protected:
  void SetUp() override {
    if (!driver_) GTEST_SKIP() << "no emulated GPU";
    void* const blas = dlopen("libcublasLt.so.13", RTLD_NOW | RTLD_LOCAL);
    if (blas == nullptr || dlsym(blas, "cublasLtMatmul") == nullptr) GTEST_SKIP() << "no cublasLt";
  }

  // The calls of what `work` does.
  template <typename Work>
  [[nodiscard]] std::string calls_of(const Work& work) const {
    driver_->clear_calls();
    work();
    std::string text = "\n";
    for (const std::string& line : driver_->calls()) text += line + "\n";
    return text;
  }

  const std::optional<EmulatedDriver> driver_ = EmulatedDriver::find();
};

TEST_F(CudaCalls, OfAStepAndOfItsReplay) {
  const Host host = make_host(2);
  const Model model(host);
  MachineOptions options;
  options.max_samples = kRows, options.max_rows = 64, options.training = true, options.device = "cuda";
  const Parameters parameters = host.parameters({model.cost}, 1);
  const Machine machine = host.machine(parameters, {model.cost}, options);
  const Updater updater = host.updater("sgd", {{"learning_rate", 0.1}});
  const std::vector<Feed> feeds = model.feeds();
  const auto expect = [&](const std::string& forward, const std::string& backward, const std::string& update) {
    EXPECT_EQ(calls_of([&] { machine.forward(feeds); }), forward);
    EXPECT_EQ(calls_of([&] { machine.backward(); }), backward);
    EXPECT_EQ(calls_of([&] { updater.update(machine); }), update);
  };
  expect(joined({kStart, kFeeds, kForward, kWait}), joined({kBackward, kWait}), joined({kFirstUpdate, kUpdate}));
  expect(joined({kFeeds, captured(kForward), kReplay}), joined({captured(kBackward), kReplay}), kUpdate);
  for (int replay = 0; replay < 2; ++replay) expect(joined({kFeeds, kReplay}), kReplay, kUpdate);
}

}  // namespace

}  // namespace tenon_tests

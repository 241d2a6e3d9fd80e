// Calls under a limit of the address space: they fail with a status, and succeed on the same host without the limit.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

#include "tests/support/fashion.h"
#include "tests/support/sanitized.h"

namespace tenon_tests {

using namespace tenon;

namespace {

// Limits the address space of the process to its present size and `bytes` more, for the lifetime of the object.
class AddressSpace {
 public:
  explicit AddressSpace(uint64_t bytes) {
    uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    getrlimit(RLIMIT_AS, &before_);
    rlimit now = before_;
    now.rlim_cur = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) + bytes;
    EXPECT_EQ(setrlimit(RLIMIT_AS, &now), 0);
  }
  ~AddressSpace() { EXPECT_EQ(setrlimit(RLIMIT_AS, &before_), 0); }
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

 private:
  rlimit before_ = {};
};

struct Outcome {
  tn_status code = TN_OK;
  std::string message;
};
template <typename Action>
Outcome outcome_of(Action action) {
  try {
    action();
  } catch (const tenon::Error& error) {
    return {error.code(), error.what()};
  }
  return {};
}

class MemoryLimit : public testing::Test {
 protected:
  void SetUp() override {
    if (sanitized()) GTEST_SKIP() << "sanitizers need more address space than the limits allow";
  }
};

// The first machine loads the device, a large file, which stays loaded: this test must be the first.
TEST_F(MemoryLimit, ADeviceThatCannotBeMappedIsNotRefused) {
  const Host host = make_host(1);
  const Perceptron model = perceptron(host, 8);
  const Parameters parameters = host.parameters({model.prediction}, 1);
  const auto make = [&] { (void)host.machine(parameters, {model.prediction}, {}); };
  Outcome outcome;
  {
    const AddressSpace limit(uint64_t{2} << 20);
    outcome = outcome_of(make);
  }
  EXPECT_EQ(outcome.code, TN_OUT_OF_MEMORY) << outcome.message;
  EXPECT_NE(outcome.message.find("cpu.so"), std::string::npos) << outcome.message;
  outcome = outcome_of(make);
  EXPECT_EQ(outcome.code, TN_OK) << "the same host without the limit: " << outcome.message;
}

TEST_F(MemoryLimit, AProductWithoutMemoryIsAStatus) {
  constexpr int64_t kSamples = 64;  // so many rows that a tile copies its columns
  const Host host = make_host(1);
  const Perceptron model = perceptron(host, 8);
  const Parameters parameters = host.parameters({model.cost}, 1);
  MachineOptions options;
  options.training = true;
  options.max_samples = kSamples;
  const Machine machine = host.machine(parameters, {model.cost}, options);
  const std::vector<uint8_t> image(kSamples * 28 * 28, 100), label(kSamples, 3);
  const auto forward = [&] {
    machine.forward(
        {{"image", {TN_U8, {kSamples, 28, 28}, image.data()}}, {"label", {TN_U8, {kSamples}, label.data()}}});
  };
  Outcome outcome;
  {
    const AddressSpace limit(0);
    std::vector<std::unique_ptr<void, decltype(&std::free)>> large;  // what the heap has left of blocks for copies
    while (void* const block = std::aligned_alloc(64, size_t{128} << 10)) large.emplace_back(block, &std::free);
    outcome = outcome_of(forward);
  }
  EXPECT_EQ(outcome.code, TN_OUT_OF_MEMORY) << outcome.message;
  EXPECT_NE(outcome.message.find("no memory to pack the matrices of a product"), std::string::npos) << outcome.message;
  outcome = outcome_of([&] {
    forward();
    machine.backward();
  });
  ASSERT_EQ(outcome.code, TN_OK) << "the same machine without the limit: " << outcome.message;
  const tenon::Array gradient = machine.gradient("prediction.bias");
  float values[10] = {};
  std::memcpy(values, gradient.data, sizeof values);
  for (const float value : values) EXPECT_TRUE(std::isfinite(value) && value != 0);
}

}  // namespace
}  // namespace tenon_tests

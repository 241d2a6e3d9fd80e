// Convolutions of the device "cuda" by cuDNN: the engines that are chosen, the plans that are made and kept, and what
// the device's own kernels compute. Runs with a cuDNN for tests on an emulated GPU, skipped with another.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include "plugins/devices/cuda/dnn/conv_plan.h"
#include "tests/devices/captured_call.h"
#include "tests/devices/conv_rows.h"

namespace tenon_tests {
namespace {

class CudaDnn : public testing::Test {
 protected:
  void SetUp() override {
    if (library_ != nullptr) record_ = reinterpret_cast<const char* (*)()>(dlsym(library_, "fake_cudnn_record"));
    if (record_ == nullptr) GTEST_SKIP() << "not the cuDNN for tests";
    record_();
  }

  // The plans and runs since the last call.
  std::string record() const { return record_(); }

 private:
  void* library_ = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
  const char* (*record_)() = nullptr;
};

constexpr uint64_t kMost = uint64_t{1} << 30;

using namespace tenon::cuda;

ConvProblem problem_of(int32_t op, const Line& line) { return {op, window_of({line, line}), 8, 4, 6, 1}; }

TEST_F(CudaDnn, ChoosesEnginesThatAreExactAndDeterministic) {
  const DnnFunctions dnn;
  cudnnHandle_t handle = nullptr;
  ASSERT_EQ(dnn.cudnnCreate(&handle), CUDNN_STATUS_SUCCESS);
  const Line even = {9, 3, 1, 1, 1}, odd = {8, 3, 2, 0, 1};
  const auto engine = [&](const ConvProblem& problem, int capability, uint64_t most) {
    const auto plan = find_plan({&dnn, handle, nullptr, capability}, problem, most);
    return plan ? plan->engine.number : -1;
  };
  for (const int32_t op : {TN_CONV_RESULTS, TN_CONV_IMAGES, TN_CONV_WEIGHTS}) {
    SCOPED_TRACE(op);
    EXPECT_EQ(engine(problem_of(op, even), 90, kMost), 5) << "the first one without a note";
    EXPECT_EQ(engine(problem_of(op, odd), 90, kMost), 1) << "engine 5 refuses";
    EXPECT_EQ(engine(problem_of(op, even), 90, 500), 1) << "engine 5 needs 1000 bytes";
    EXPECT_EQ(engine(problem_of(op, even), 90, 10), -1);
    EXPECT_EQ(engine(problem_of(op, even), 86, kMost), op == TN_CONV_RESULTS ? 1 : 5) << "errata";
  }
  // Padding that no window reaches is made even.
  EXPECT_EQ(engine(problem_of(TN_CONV_RESULTS, {8, 3, 2, 1, 0}), 90, kMost), 5);
  // The same engine with its settings, or none.
  const DnnTarget target = {&dnn, handle, nullptr, 90};
  const auto first = find_plan(target, problem_of(TN_CONV_RESULTS, even), kMost);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->engine.knobs.size(), 1U);
  EXPECT_EQ(first->workspace_bytes, 1000U);
  EXPECT_TRUE(plan_on(target, problem_of(TN_CONV_RESULTS, even), first->engine, kMost));
  EXPECT_FALSE(plan_on(target, problem_of(TN_CONV_RESULTS, even), first->engine, 999));
  EXPECT_FALSE(plan_on(target, problem_of(TN_CONV_RESULTS, odd), first->engine, kMost));
  EXPECT_FALSE(plan_on(target, problem_of(TN_CONV_RESULTS, even), {77, {}}, kMost));
  EXPECT_EQ(dnn.cudnnDestroy(handle), CUDNN_STATUS_SUCCESS);
}

class CudaDnnCalls : public CudaDnn {
 protected:
  // A convolution of the device, prepared for 8 samples.
  struct Call {
    Call(DeviceUnderTest& device, tn_window window, tn_dtype dtype, int32_t op = TN_CONV_RESULTS) : call(device) {
      const tn_conv conv = {sizeof conv, dtype, op, 0, bounded_symbol(TN_SYMBOL_SAMPLES, 8), 2, 2, 1, &window};
      EXPECT_EQ(device.table<tn_conv_table>(TN_CONV)->prepare(device.device(), device.services(), device.errors(),
                                                              &conv, &call.prepared),
                TN_OK)
          << device.message;
    }
    tn_status run(int64_t samples, uint8_t request) {
      return call.run({&images, &weights}, {&results}, {request}, {0, samples}, 1);
    }
    PreparedCall call;
    Guarded images = write_all(TN_F64, std::vector<double>(512, 0)),
            weights = write_all(TN_F64, std::vector<double>(64, 0)),
            results = write_all(TN_F64, std::vector<double>(512, 0));
  };
  static constexpr tn_window kEven = {sizeof(tn_window), 1, {8}, {3}, {1}, {1}, {1}, {1}};

  void SetUp() override {
    CudaDnn::SetUp();
    if (!IsSkipped()) opened_.emplace(device_plugin("cuda"));
  }
  DeviceUnderTest& device() { return *opened_; }

 private:
  std::optional<DeviceUnderTest> opened_;
};

TEST_F(CudaDnnCalls, MakesAPlanForEachNumberOfSamplesOnce) {
  Call one(device(), kEven, TN_F32);
  EXPECT_EQ(one.call.prepared.traits, uint32_t{TN_TRAIT_HOST_SIZES | TN_TRAIT_BATCH_VARIANT | TN_TRAIT_ANY_ALIGNMENT});
  EXPECT_EQ(one.call.prepared.workspace_bytes, 1000U + 192) << "so that 1000 bytes begin at a multiple of 256";
  EXPECT_EQ(record(), "plan 0 of 8 on 15\nplan 0 of 8 on 5\n") << "15 needs too much memory";
  for (int i = 0; i < 2; ++i) ASSERT_EQ(one.run(8, TN_REQUEST_WRITE), TN_OK) << device().message;
  EXPECT_EQ(record(), "run 0 of 8\nrun 0 of 8\n");
  for (int i = 0; i < 2; ++i) ASSERT_EQ(one.run(3, TN_REQUEST_WRITE), TN_OK) << device().message;
  EXPECT_EQ(record(), "plan 0 of 3 on 5\nrun 0 of 3\nrun 0 of 3\n");
  ASSERT_EQ(one.run(8, TN_REQUEST_ADD), TN_OK) << device().message;
  EXPECT_EQ(record(), "plan 0 of 8 on 5 adds\nrun 0 of 8\n");
  Call same(device(), kEven, TN_F32);  // the plans belong to the device
  ASSERT_EQ(same.run(3, TN_REQUEST_WRITE), TN_OK) << device().message;
  EXPECT_EQ(record(), "run 0 of 3\n");
}

TEST_F(CudaDnnCalls, WorkspacesBeginAnywhere) {
  Call one(device(), kEven, TN_F32);
  for (size_t shift = 0; shift < 256; shift += 64) {
    one.call.workspace_shift = shift;
    ASSERT_EQ(one.run(8, TN_REQUEST_WRITE), TN_OK) << device().message << " at " << shift;
  }
}

TEST_F(CudaDnnCalls, StatesThatSamplesDependOnTheOthers) {
  EXPECT_EQ(Call(device(), kEven, TN_F32, TN_CONV_IMAGES).call.prepared.traits,
            uint32_t{TN_TRAIT_HOST_SIZES | TN_TRAIT_BATCH_VARIANT | TN_TRAIT_ANY_ALIGNMENT});
  EXPECT_EQ(Call(device(), kEven, TN_F32, TN_CONV_WEIGHTS).call.prepared.traits,
            uint32_t{TN_TRAIT_HOST_SIZES | TN_TRAIT_ANY_ALIGNMENT});
}

// A new plan would end a capture, so a number of samples that did not run before is refused, and the capture dropped.
TEST_F(CudaDnnCalls, NewNumbersOfSamplesAreNotCaptured) {
  const Call one(device(), kEven, TN_F32);
  const CapturedCall captured(device(), one.call.prepared);
  EXPECT_EQ(captured.run(3), TN_OK) << device().message;
  for (const int64_t samples : {3, 8}) EXPECT_EQ(captured.capture(samples), TN_OK) << device().message;
  record();
  EXPECT_EQ(captured.capture(2), TN_UNSUPPORTED);
  EXPECT_EQ(device().message, "a convolution of 2 samples is captured before it ran");
  EXPECT_EQ(record(), "");
  EXPECT_EQ(captured.run(2), TN_OK) << device().message;
  EXPECT_EQ(record(), "plan 0 of 2 on 5\nrun 0 of 2\n");
  EXPECT_EQ(captured.capture(2), TN_OK) << device().message;
}

// The cuDNN for tests notices plans during a capture, as the test above needs.
TEST_F(CudaDnnCalls, PlansDuringACaptureEndIt) {
  const DnnFunctions dnn;
  cudnnHandle_t handle = nullptr;
  ASSERT_EQ(dnn.cudnnCreate(&handle), CUDNN_STATUS_SUCCESS);
  const DnnTarget target = {&dnn, handle, nullptr, 90};
  const ConvProblem problem = problem_of(TN_CONV_RESULTS, {9, 3, 1, 1, 1});
  const auto known = find_plan(target, problem, kMost);
  ASSERT_TRUE(known);
  const Call one(device(), kEven, TN_F32);
  const CapturedCall captured(device(), one.call.prepared);
  const auto status_of = [](bool made) { return made ? tn_status{TN_OK} : tn_status{TN_UNSUPPORTED}; };
  const auto searched = [&] { return status_of(find_plan(target, problem, kMost).has_value()); };
  const auto finished = [&] { return status_of(plan_on(target, problem, known->engine, kMost).has_value()); };
  EXPECT_EQ(captured.capture(searched, TN_OK), TN_UNSUPPORTED);
  EXPECT_EQ(captured.capture(finished, TN_OK), TN_UNSUPPORTED);
  // Work that follows a refusal is lost with the capture.
  EXPECT_EQ(captured.capture([&] { return searched(), captured.run(8); }, TN_INTERNAL), TN_OK);
  EXPECT_EQ(dnn.cudnnDestroy(handle), CUDNN_STATUS_SUCCESS);
}

TEST_F(CudaDnnCalls, LeavesTheRestToTheOwnKernels) {
  Call one(device(), kEven, TN_F32);
  record();
  EXPECT_EQ(one.run(0, TN_REQUEST_WRITE), TN_OK);
  EXPECT_EQ(one.run(8, TN_REQUEST_NONE), TN_OK);
  EXPECT_EQ(one.run(-1, TN_REQUEST_WRITE), TN_MISUSE);
  EXPECT_EQ(device().message, "a convolution of a negative number of samples");
  Call wide(device(), kEven, TN_F64);
  EXPECT_EQ(wide.call.prepared.traits, uint32_t{TN_TRAIT_CAPTURABLE | TN_TRAIT_ANY_ALIGNMENT});
  EXPECT_EQ(wide.run(8, TN_REQUEST_WRITE), TN_OK) << device().message;
  EXPECT_EQ(record(), "");
}

}  // namespace
}  // namespace tenon_tests

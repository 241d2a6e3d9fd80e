// The device "cuda" on a GPU: memory, streams, and pointwise programs compared with the fp64 reference; also run on an
// emulated GPU. Skipped without either. SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <filesystem>

#include "tests/devices/cuda_programs.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon::core;

namespace {

class Cuda : public testing::Test {
 protected:
  void SetUp() override {
    const tn_plugin* const plugin = device_plugin("cuda");
    if (plugin->devices[0]->count(nullptr, nullptr) <= 0) GTEST_SKIP() << "no CUDA device on this machine";
    device_ = std::make_unique<DeviceUnderTest>(plugin);
  }
  DeviceUnderTest& device() { return *device_; }

 private:
  std::unique_ptr<DeviceUnderTest> device_;
};

TEST_F(Cuda, MovesMemory) {
  const tn_device_type& type = *device().type();
  tn_device_properties properties = {};
  properties.size = sizeof properties;
  ASSERT_EQ(type.properties(device().device(), device().errors(), &properties), TN_OK);
  EXPECT_EQ(properties.host_memory, 0U);
  EXPECT_GT(properties.memory_bytes, 0U);
  EXPECT_STRNE(properties.name, "");

  std::vector<uint8_t> numbers(1000);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<uint8_t>(i * 7);
  Guarded from(1000), to(1000);
  std::copy(numbers.begin(), numbers.end(), from.data());
  Staging memory(device());
  uint8_t *const a = memory.of(from), *const b = memory.of(to);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a) % 64, 0U);
  void *one = nullptr, *two = nullptr, *event = nullptr;
  ASSERT_EQ(type.stream_create(device().device(), device().errors(), &one), TN_OK);
  ASSERT_EQ(type.stream_create(device().device(), device().errors(), &two), TN_OK);
  ASSERT_EQ(type.event_create(device().device(), device().errors(), &event), TN_OK);
  const auto* const native = device().table<tn_native_table>(TN_NATIVE);
  EXPECT_NE(native->stream(device().device(), one), nullptr);
  EXPECT_NE(native->stream(device().device(), nullptr), nullptr);
  EXPECT_EQ(type.stream_wait(device().device(), device().errors(), nullptr), TN_OK);  // the copies to a and b
  // The fill runs on one stream; the copy over it, on the other stream, waits for it.
  EXPECT_EQ(type.fill(device().device(), device().errors(), one, b, 9, 1000), TN_OK);
  EXPECT_EQ(type.event_record(device().device(), device().errors(), event, one), TN_OK);
  EXPECT_EQ(type.event_wait(device().device(), device().errors(), event, two), TN_OK);
  tn_copy copy = {sizeof copy, TN_COPY_ON_DEVICE, two, b, a, 600};
  EXPECT_EQ(type.copy(device().device(), device().errors(), &copy), TN_OK);
  EXPECT_EQ(type.stream_wait(device().device(), device().errors(), two), TN_OK) << device().message;
  std::fill(numbers.begin() + 600, numbers.end(), uint8_t{9});
  EXPECT_EQ(memory.finish(), TN_OK);
  EXPECT_EQ(to.bytes(), numbers);
  copy.kind = 77;
  EXPECT_EQ(type.copy(device().device(), device().errors(), &copy), TN_INVALID);
  type.event_destroy(device().device(), event);
  type.stream_destroy(device().device(), one);
  type.stream_destroy(device().device(), two);
}

TEST_F(Cuda, ReportsThatMemoryIsFull) {
  EXPECT_EQ(device().type()->allocate(device().device(), device().errors(), uint64_t{1} << 50), nullptr);
  EXPECT_EQ(device().code, TN_OUT_OF_MEMORY);
  EXPECT_NE(device().message.find("CUDA_ERROR_OUT_OF_MEMORY"), std::string::npos) << device().message;
  // The device still works.
  void* const memory = device().type()->allocate(device().device(), device().errors(), 3);
  EXPECT_NE(memory, nullptr);
  device().type()->release(device().device(), memory, 3);
}

// Every function reports its own failure, once.
TEST_F(Cuda, CallsReportTheirFailures) {
  EXPECT_NE(device().type()->event_record(device().device(), device().errors(), nullptr, nullptr), TN_OK);
  EXPECT_NE(device().message.find("cuEventRecord"), std::string::npos) << device().message;
  EXPECT_EQ(device().type()->stream_wait(device().device(), device().errors(), nullptr), TN_OK);
}

TEST_F(Cuda, ProgramsAgreeWithTheReference) {
  for (const CudaProgram& program : CudaPrograms::all()) {
    SCOPED_TRACE(program.name);
    check_case(device(), program.run, program.tolerance, program.tolerance);
    if (HasFatalFailure()) return;
  }
}

TEST_F(Cuda, ExtremesOfComputedValues) {
  for (const CudaProgram& program : CudaPrograms::all()) {
    if (program.name.find("est of ") == std::string::npos) continue;  // "largest of 17", "smallest of 17" ...
    SCOPED_TRACE(program.name);
    check_case(device(), program.run, program.tolerance, program.tolerance);
  }
}

// Sizes are read on the device, and neither the bounds of the plan nor another run change the bits.
TEST_F(Cuda, BoundsDoNotMatter) {
  for (const CudaProgram& program : CudaPrograms::all()) {
    const auto is = [&](const char* name) { return program.name == name; };
    if (!is("totals") && !is("batch norm") && !is("layer norm's gradient of 300")) continue;
    SCOPED_TRACE(program.name);
    PointwiseCase wide = program.run;
    wide.slack = 40 * wide.rows;
    PreparedCall call(device());
    ASSERT_EQ(prepare(device(), wide, &call.prepared), TN_OK);
    EXPECT_EQ(call.prepared.traits, uint32_t{TN_TRAIT_CAPTURABLE | TN_TRAIT_ANY_ALIGNMENT});
    EXPECT_TRUE(run_case(device(), wide, 1).bytes == run_case(device(), program.run, 1).bytes);
  }
}

// Four elements at once are read and written where operands are aligned for that, and the bits do not depend on it.
TEST_F(Cuda, OperandsBeginAtAnyElement) {
  for (CudaProgram program : CudaPrograms::all()) {
    const auto is = [&](const char* name) { return program.name == name; };
    if (!is("ints") && !is("draws in f64") && !is("adam with bf16 gradients")) continue;
    SCOPED_TRACE(program.name);
    for (const uint8_t request : {TN_REQUEST_WRITE, TN_REQUEST_ADD}) {
      program.run.requests.clear();
      for (size_t k = 0; k < program.run.program.outputs.size(); ++k)
        program.run.requests.push_back(output_type(program.run, k) == TN_BOOL ? uint8_t{TN_REQUEST_WRITE} : request);
      program.run.shift = 0;
      const auto aligned = run_case(device(), program.run, 1).bytes;
      check_case(device(), program.run, program.tolerance, program.tolerance);
      for (const size_t shift : {1, 2, 3, 4}) {
        program.run.shift = shift;
        EXPECT_TRUE(run_case(device(), program.run, 1).bytes == aligned) << shift;
      }
    }
  }
}

// Another device finds the image that the first one left, unless it is damaged.
TEST_F(Cuda, ImagesAreCompiledOnce) {
  const TemporaryFolder folder;
  setenv("XDG_CACHE_HOME", folder.path().c_str(), 1);
  const PointwiseCase c = CudaPrograms::all()[0].run;
  struct stat before = {}, after = {};
  std::string path;
  const auto run = [&] {
    DeviceUnderTest one(device_plugin("cuda"));
    const auto bytes = run_case(one, c, 1).bytes;
    for (const auto& entry : std::filesystem::directory_iterator(folder.file("tenon/cuda"))) path = entry.path();
    return bytes;
  };
  const auto first = run();
  ASSERT_EQ(stat(path.c_str(), &before), 0);
  EXPECT_TRUE(run() == first);
  ASSERT_EQ(stat(path.c_str(), &after), 0);
  EXPECT_EQ(after.st_ino, before.st_ino) << "it was compiled again";
  std::filesystem::resize_file(path, 1000);
  EXPECT_TRUE(run() == first);
  ASSERT_EQ(stat(path.c_str(), &after), 0);
  EXPECT_EQ(after.st_size, before.st_size);
}

TEST_F(Cuda, RefusesWhatItCannotDo) {
  ProgramWriter writer;
  writer.output(writer.apply(TN_OP_NEG, writer.input(TN_FULL)));
  PointwiseCase c;
  c.program = writer.finish();
  c.rows = 4;
  tn_prepared prepared = {sizeof(tn_prepared), 0, nullptr, 0, nullptr, nullptr};
  const auto refusal = [&](const PointwiseSite& site, tn_status code) {
    EXPECT_EQ(prepare(device(), site.get(), &prepared), code);
    EXPECT_EQ(prepared.binding, nullptr);
    return device().message;
  };
  PointwiseSite half(c, 0);
  half.get().compute = TN_F16;
  EXPECT_NE(refusal(half, TN_UNSUPPORTED).find("float16"), std::string::npos) << device().message;
  EXPECT_NE(refusal(PointwiseSite(c, -1), TN_INVALID).find("rows"), std::string::npos) << device().message;
  PointwiseSite vast(c, int64_t{1} << 62);
  vast.get().columns = tn_dim_constant(16);
  EXPECT_NE(refusal(vast, TN_INVALID).find("too many elements"), std::string::npos) << device().message;
  PointwiseCase later = c;
  later.program.instructions.back().op = 999;  // an opcode of a later version
  EXPECT_EQ(refusal(PointwiseSite(later, 0), TN_UNSUPPORTED), "the program has an operation that CUDA does not know");
  c.input_types = {TN_DTYPE(5, 64)};
  EXPECT_NE(refusal(PointwiseSite(c, 0), TN_UNSUPPORTED).find("complex64"), std::string::npos) << device().message;
  ProgramWriter many;
  for (int i = 0; i < 300; ++i) many.output(many.input(TN_FULL));
  PointwiseCase wide;
  wide.program = many.finish();
  EXPECT_NE(refusal(PointwiseSite(wide, 0), TN_UNSUPPORTED).find("300 inputs"), std::string::npos) << device().message;
}

}  // namespace
}  // namespace tenon_tests

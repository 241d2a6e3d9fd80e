// The device "cuda" on a GPU, compared with the fp64 reference; also run on an emulated GPU. Skipped without either.
// SPDX-License-Identifier: Apache-2.0
#include "tests/devices/cuda_device.h"

#include "tests/devices/cuda_programs.h"
#include "tests/support/symbols.h"

namespace tenon_tests {

using namespace tenon::core;

namespace {

#define SKIP_WITHOUT(device) \
  if (!(device).present) GTEST_SKIP() << "no CUDA device on this machine"

// Returns the bytes of the numbers, at least 1.
std::vector<uint8_t> bytes_of(tn_dtype type, const std::vector<double>& numbers) {
  std::vector<uint8_t> bytes = write_all(type, numbers).bytes();
  if (bytes.empty()) bytes.resize(1);
  return bytes;
}

// A prepared case, which runs with operands on the device for any number of rows up to the bound.
class CudaRun {
 public:
  CudaRun(CudaDevice& device, const PointwiseCase& c, int64_t bound) : device_(device), case_(c) {
    const CudaSite site(c, bound);
    if (device.prepare(site, &prepared_) != TN_OK) throw std::runtime_error(device.message);
    workspace_.emplace_back(device, std::vector<uint8_t>(prepared_.workspace_bytes + 1, 0x7f));
  }
  ~CudaRun() { prepared_.destroy(prepared_.binding); }
  CudaRun(const CudaRun&) = delete;
  CudaRun& operator=(const CudaRun&) = delete;

  // Runs one call. Returns the bytes of the outputs.
  std::vector<std::vector<uint8_t>> run() { return run(case_); }
  std::vector<std::vector<uint8_t>> run(const PointwiseCase& c, void* stream = nullptr) {
    std::vector<CudaMemory> inputs, outputs, symbols;
    const std::vector<int64_t> values = symbol_values({0, c.rows, c.columns});
    const auto* const first = reinterpret_cast<const uint8_t*>(values.data());
    symbols.emplace_back(device_, std::vector<uint8_t>(first, first + values.size() * sizeof values[0]));
    for (size_t i = 0; i < c.inputs.size(); ++i) inputs.emplace_back(device_, bytes_of(input_type(c, i), c.inputs[i]));
    for (size_t k = 0; k < c.program.outputs.size(); ++k) {
      const int64_t count = tenon::check::reference::elements(c.program.output_extent(k), c.rows, c.columns);
      outputs.emplace_back(device_,
                           bytes_of(output_type(c, k), std::vector<double>(static_cast<size_t>(count), held(c, k))));
    }
    std::vector<tn_tensor> tensors(inputs.size() + outputs.size());
    std::vector<const tn_tensor*> in;
    std::vector<tn_tensor*> out;
    std::vector<uint8_t> requests;
    const auto memory = [&](size_t k) -> CudaMemory& {
      return alias(c, k) >= 0 ? inputs[static_cast<size_t>(alias(c, k))] : outputs[k];
    };
    for (size_t i = 0; i < tensors.size(); ++i) {
      const bool is_input = i < inputs.size();
      const size_t k = i - inputs.size();
      tensors[i].size = sizeof(tn_tensor);
      tensors[i].dl.data = is_input ? inputs[i].data() : memory(k).data();
      if (is_input) {
        in.push_back(&tensors[i]);
        continue;
      }
      requests.push_back(request(c, k));
      out.push_back(requests.back() == TN_REQUEST_NONE ? nullptr : &tensors[i]);
    }
    tn_execution execution = {};
    execution.size = sizeof execution;
    execution.device = device_.device();
    execution.stream = stream;
    const auto* const step = reinterpret_cast<const uint8_t*>(&kTestStep);
    symbols.emplace_back(device_, std::vector<uint8_t>(step, step + sizeof kTestStep));
    execution.random = static_cast<const tn_random*>(symbols[1].data());
    execution.symbols = static_cast<const int64_t*>(symbols[0].data());
    execution.errors = device_.errors();
    tn_call call = {};
    call.size = sizeof call;
    call.inputs_count = static_cast<uint32_t>(in.size());
    call.outputs_count = static_cast<uint32_t>(out.size());
    call.inputs = in.data();
    call.outputs = out.data();
    call.requests = requests.data();
    call.workspace = workspace_[0].data();
    EXPECT_EQ(prepared_.run(prepared_.binding, &execution, &call), TN_OK) << device_.message;
    EXPECT_EQ(device_.type()->stream_wait(device_.device(), device_.errors(), stream), TN_OK) << device_.message;
    std::vector<std::vector<uint8_t>> result;
    for (size_t k = 0; k < outputs.size(); ++k) {
      const int64_t count = tenon::check::reference::elements(c.program.output_extent(k), c.rows, c.columns);
      result.push_back(memory(k).read());
      result.back().resize(static_cast<size_t>(count) * tn_dtype_bytes(output_type(c, k)));
    }
    return result;
  }
  [[nodiscard]] const tn_prepared& prepared() const { return prepared_; }

 private:
  CudaDevice& device_;
  PointwiseCase case_;
  tn_prepared prepared_ = {};
  std::vector<CudaMemory> workspace_;
};

void expect_close(const PointwiseCase& c, const std::vector<std::vector<uint8_t>>& bytes, double tolerance) {
  const std::vector<std::vector<double>> want = expected(c);
  ASSERT_EQ(bytes.size(), want.size());
  for (size_t k = 0; k < want.size(); ++k) {
    const tn_dtype type = output_type(c, k);
    ASSERT_EQ(bytes[k].size(), want[k].size() * tn_dtype_bytes(type));
    for (size_t i = 0; i < want[k].size(); ++i) {
      const double got = read_element(type, bytes[k].data() + i * tn_dtype_bytes(type)), wanted = want[k][i];
      if (std::isnan(wanted)) {
        ASSERT_TRUE(std::isnan(got)) << "output " << k << " element " << i << ": " << got << " for NaN";
      } else if (std::isinf(wanted)) {
        ASSERT_EQ(got, wanted) << "output " << k << " element " << i;
      } else {
        ASSERT_NEAR(got, wanted, std::max(std::fabs(wanted), 1.0) * tolerance) << "output " << k << " element " << i;
      }
    }
  }
}

TEST(CudaDevice, MovesMemory) {
  CudaDevice device;
  SKIP_WITHOUT(device);
  const tn_device_type& type = *device.type();
  tn_device_properties properties = {};
  properties.size = sizeof properties;
  ASSERT_EQ(type.properties(device.device(), device.errors(), &properties), TN_OK);
  EXPECT_EQ(properties.host_memory, 0U);
  EXPECT_GT(properties.memory_bytes, 0U);
  EXPECT_STRNE(properties.name, "");

  std::vector<uint8_t> numbers(1000);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<uint8_t>(i * 7);
  const CudaMemory a(device, numbers), b(device, std::vector<uint8_t>(1000));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a.data()) % 64, 0U);
  void *one = nullptr, *two = nullptr, *event = nullptr;
  ASSERT_EQ(type.stream_create(device.device(), device.errors(), &one), TN_OK);
  ASSERT_EQ(type.stream_create(device.device(), device.errors(), &two), TN_OK);
  ASSERT_EQ(type.event_create(device.device(), device.errors(), &event), TN_OK);
  const auto* const native = device.table<tn_native_table>(TN_NATIVE);
  EXPECT_EQ(native->stream(device.device(), one), one);
  EXPECT_NE(native->stream(device.device(), nullptr), nullptr);
  // The fill runs on one stream; the copy over it, on the other stream, waits for it.
  EXPECT_EQ(type.fill(device.device(), device.errors(), one, b.data(), 9, 1000), TN_OK);
  EXPECT_EQ(type.event_record(device.device(), device.errors(), event, one), TN_OK);
  EXPECT_EQ(type.event_wait(device.device(), device.errors(), event, two), TN_OK);
  tn_copy copy = {sizeof copy, TN_COPY_ON_DEVICE, two, b.data(), a.data(), 600};
  EXPECT_EQ(type.copy(device.device(), device.errors(), &copy), TN_OK);
  EXPECT_EQ(type.stream_wait(device.device(), device.errors(), two), TN_OK) << device.message;
  std::fill(numbers.begin() + 600, numbers.end(), uint8_t{9});
  EXPECT_EQ(b.read(), numbers);
  copy.kind = 77;
  EXPECT_EQ(type.copy(device.device(), device.errors(), &copy), TN_INVALID);
  type.event_destroy(device.device(), event);
  type.stream_destroy(device.device(), one);
  type.stream_destroy(device.device(), two);
}

TEST(CudaDevice, ReportsThatMemoryIsFull) {
  CudaDevice device;
  SKIP_WITHOUT(device);
  EXPECT_EQ(device.type()->allocate(device.device(), device.errors(), uint64_t{1} << 50), nullptr);
  EXPECT_EQ(device.code, TN_OUT_OF_MEMORY);
  EXPECT_NE(device.message.find("CUDA_ERROR_OUT_OF_MEMORY"), std::string::npos) << device.message;
  // The device still works.
  EXPECT_EQ(CudaMemory(device, {1, 2, 3}).read(), (std::vector<uint8_t>{1, 2, 3}));
}

// Every function reports its own failure, once.
TEST(CudaDevice, CallsReportTheirFailures) {
  CudaDevice device;
  SKIP_WITHOUT(device);
  EXPECT_NE(device.type()->event_record(device.device(), device.errors(), nullptr, nullptr), TN_OK);
  EXPECT_NE(device.message.find("cuEventRecord"), std::string::npos) << device.message;
  EXPECT_EQ(device.type()->stream_wait(device.device(), device.errors(), nullptr), TN_OK);
}

TEST(CudaPointwise, AgreesWithTheReference) {
  CudaDevice device;
  SKIP_WITHOUT(device);
  for (const CudaProgram& program : CudaPrograms::all()) {
    SCOPED_TRACE(program.name);
    CudaRun run(device, program.run, program.run.rows + 5);
    EXPECT_EQ(run.prepared().traits, static_cast<uint32_t>(TN_TRAIT_CAPTURABLE));
    const std::vector<std::vector<uint8_t>> first = run.run();
    expect_close(program.run, first, program.tolerance);
    if (HasFatalFailure()) return;
    EXPECT_EQ(run.run(), first) << "the second run gave other bits";
  }
}

// Sizes are read on the device, and the bounds of the plan do not change the bits.
TEST(CudaPointwise, BoundsDoNotMatter) {
  CudaDevice device;
  SKIP_WITHOUT(device);
  for (const CudaProgram& program : CudaPrograms::all()) {
    const auto is = [&](const char* name) { return program.name == name; };
    if (!is("totals") && !is("batch norm") && !is("layer norm's gradient of 300")) continue;
    SCOPED_TRACE(program.name);
    CudaRun tight(device, program.run, program.run.rows), wide(device, program.run, 40 * program.run.rows);
    EXPECT_GE(wide.prepared().workspace_bytes, tight.prepared().workspace_bytes);
    EXPECT_EQ(wide.run(), tight.run());
    void* stream = nullptr;
    ASSERT_EQ(device.type()->stream_create(device.device(), device.errors(), &stream), TN_OK);
    PointwiseCase fewer = program.run;
    fewer.rows = 3;
    for (size_t i = 0; i < fewer.inputs.size(); ++i)
      fewer.inputs[i].resize(
          static_cast<size_t>(tenon::check::reference::elements(fewer.program.inputs[i].extent, 3, fewer.columns)));
    expect_close(fewer, wide.run(fewer, stream), 1e-4);
    device.type()->stream_destroy(device.device(), stream);
  }
}

TEST(CudaPointwise, RefusesWhatItCannotDo) {
  CudaDevice device;
  SKIP_WITHOUT(device);
  ProgramWriter writer;
  writer.output(writer.apply(TN_OP_NEG, writer.input(TN_FULL)));
  PointwiseCase c;
  c.program = writer.finish();
  c.rows = 4;
  tn_prepared prepared;
  const auto refusal = [&](const CudaSite& site, tn_status code) {
    EXPECT_EQ(device.prepare(site, &prepared), code);
    EXPECT_EQ(prepared.binding, nullptr);
    return device.message;
  };
  CudaSite half(c, 4);
  half.get().compute = TN_F16;
  EXPECT_NE(refusal(half, TN_UNSUPPORTED).find("float16"), std::string::npos) << device.message;
  EXPECT_NE(refusal(CudaSite(c, TN_UNBOUNDED), TN_INVALID).find("rows"), std::string::npos) << device.message;
  CudaSite vast(c, int64_t{1} << 62);
  vast.get().columns = tn_dim_constant(16);
  EXPECT_NE(refusal(vast, TN_INVALID).find("too many elements"), std::string::npos) << device.message;
  PointwiseCase later = c;
  later.program.instructions.back().op = 999;  // an opcode of a later version
  EXPECT_EQ(refusal(CudaSite(later, 4), TN_UNSUPPORTED), "the program has an operation that CUDA does not know");
  c.input_types = {TN_DTYPE(5, 64)};
  EXPECT_NE(refusal(CudaSite(c, 4), TN_UNSUPPORTED).find("complex64"), std::string::npos) << device.message;
  ProgramWriter many;
  for (int i = 0; i < 300; ++i) many.output(many.input(TN_FULL));
  PointwiseCase wide;
  wide.program = many.finish();
  EXPECT_NE(refusal(CudaSite(wide, 4), TN_UNSUPPORTED).find("300 inputs"), std::string::npos) << device.message;
}

}  // namespace
}  // namespace tenon_tests

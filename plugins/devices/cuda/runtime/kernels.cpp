// Compiles the kernels of calls and enqueues them. SPDX-License-Identifier: Apache-2.0
#include "kernels.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "device.h"
#include "primitives/prelude.h"

namespace tenon::cuda {

int64_t pieces(int64_t count, int64_t length, int64_t most) {
  const int64_t n = count / length + (count % length != 0 ? 1 : 0);
  return std::clamp<int64_t>(n, 1, most);
}

int64_t bound_of(const tn_dim& dim, const char* what) {
  if (dim.symbol == TN_SYMBOL_NONE) return std::max<int64_t>(dim.offset, 0);
  if (dim.bound < 0) throw tn::Failure(TN_INVALID, "", std::string("the number of ") + what + " has no bound");
  return dim.bound;
}

int64_t product_of(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result) || result > int64_t{1} << 60)
    throw tn::Failure(TN_INVALID, "", std::to_string(a) + " times " + std::to_string(b) + " are too many elements");
  return result;
}

std::string dtype_text(tn_dtype dtype) {
  static constexpr const char* kCodes[] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"};
  const uint32_t code = tn_dtype_code(dtype);
  const std::string first = code < 7 ? kCodes[code] : "code " + std::to_string(code) + " bits ";
  return first + std::to_string(tn_dtype_bits(dtype));
}

const char* element_name(tn_dtype dtype) {
  switch (dtype) {
    case TN_I8:
      return "signed char";
    case TN_I16:
      return "short";
    case TN_I32:
      return "int";
    case TN_I64:
      return "Int64";
    case TN_U8:
      return "unsigned char";
    case TN_U16:
      return "unsigned short";
    case TN_U32:
      return "unsigned int";
    case TN_F16:
      return "Half";
    case TN_BF16:
      return "Brain";
    case TN_F32:
      return "float";
    case TN_F64:
      return "double";
    case TN_BOOL:
      return "Truth";
    default:
      return nullptr;
  }
}

const char* bits_name(tn_dtype dtype) {
  switch (tn_dtype_bytes(dtype)) {
    case 1:
      return "unsigned char";
    case 2:
      return "unsigned short";
    case 4:
      return "unsigned int";
    case 8:
      return "Int64";
    default:
      return nullptr;
  }
}

namespace {

// Bytes of arguments that every GPU and driver accepts.
constexpr size_t kMostArgumentBytes = 4096;

// Offsets in the argument, in bytes.
constexpr size_t kSymbolsAt = 0;
constexpr size_t kRandomAt = 8;
constexpr size_t kFaultAt = 16;
constexpr size_t kStepAt = 24;
constexpr size_t kTableAt = 32;
constexpr size_t kExtentsAt = 40;  // where the lists begin

// The value of a size is coefficient * symbols[symbol] + offset, or offset if symbol is TN_SYMBOL_NONE.
struct Extent {
  int64_t coefficient;
  int64_t offset;
  int64_t symbol;
};

// Numbers in device memory that do not change.
class Table {
 public:
  Table(Device& device, const std::vector<int64_t>& numbers) : device_(device) {
    if (numbers.empty()) return;
    const Driver& driver = device.driver();
    const size_t bytes = numbers.size() * sizeof numbers[0];
    const Current current(device.context());
    check(driver, current.call([&] { return driver.cuMemAlloc(&memory_, bytes); }), "cuMemAlloc");
    CUstream stream = device.stream(nullptr).handle();
    CUresult result = driver.cuMemcpyHtoDAsync(memory_, numbers.data(), bytes, stream);
    if (result == CUDA_SUCCESS) result = driver.cuStreamSynchronize(stream);
    if (result != CUDA_SUCCESS) driver.cuMemFree(memory_);
    check(driver, result, "cuMemcpyHtoDAsync");
  }
  ~Table() {
    if (memory_ == 0) return;
    const Current current(device_.context());
    static_cast<void>(current.call([&] { return device_.driver().cuMemFree(memory_); }));
  }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  [[nodiscard]] CUdeviceptr address() const { return memory_; }

 private:
  Device& device_;
  CUdeviceptr memory_ = 0;
};

struct Binding {
  Binding(Device& on, const Kernels& kernels) : device(on), table(on, kernels.table) {}

  Device& device;
  const Table table;
  std::shared_ptr<const Module> module;
  std::vector<Launch> launches;
  std::vector<uint64_t> offsets;  // of each buffer in the workspace, in bytes
  std::vector<bool> optional;
  uint32_t inputs_count = 0;
  uint32_t outputs_count = 0;
  int32_t rows = -1;
  bool adds = true;
  size_t inputs_at = 0, outputs_at = 0, buffers_at = 0, rows_at = 0, requests_at = 0;  // offsets in `arguments`
  // The kernels' argument. run writes pointers, requests and steps, so that a binding must not run twice at once.
  std::vector<unsigned char> arguments;
};

void set(std::vector<unsigned char>& bytes, size_t at, uint64_t value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}
void set(std::vector<unsigned char>& bytes, size_t at, const void* pointer) {
  std::memcpy(bytes.data() + at, &pointer, sizeof pointer);
}

// C++ has no empty arrays.
size_t elements_of(size_t count) { return std::max<size_t>(count, 1); }

std::string member(const char* type, const char* name, size_t count) {
  return std::string("  ") + type + " " + name + "[" + std::to_string(elements_of(count)) + "];\n";
}

}  // namespace

std::string whole_text(const Kernels& kernels) {
  std::string text = kernels.compute == TN_F64
                         ? "typedef double F;\ntypedef long long I;\ntypedef unsigned long long U;\n"
                         : "typedef float F;\ntypedef int I;\ntypedef unsigned int U;\n";
  text += kElementsText;
  text += kReductionsText;
  text +=
      "\nstruct Arguments {\n  const Int64* symbols;\n  const Random* random;\n  Fault* fault;\n  Int64 step;\n"
      "  const Int64* table;\n";
  text += member("Extent", "sizes", kernels.sizes.size()) + member("const void*", "inputs", kernels.inputs_count) +
          member("void*", "outputs", kernels.outputs_count) + member("void*", "buffers", kernels.buffers.size());
  return text + "  Rows rows;\n" + member("unsigned char", "requests", kernels.outputs_count) + "};\n\n" + kernels.text;
}

namespace {

// Lays out the arguments and writes those that do not change from call to call.
void lay_out(Binding& binding, const Kernels& kernels) {
  binding.inputs_at = kExtentsAt + elements_of(kernels.sizes.size()) * sizeof(Extent);
  binding.outputs_at = binding.inputs_at + 8 * elements_of(kernels.inputs_count);
  binding.buffers_at = binding.outputs_at + 8 * elements_of(kernels.outputs_count);
  binding.rows_at = binding.buffers_at + 8 * elements_of(kernels.buffers.size());
  binding.requests_at = binding.rows_at + 24;
  const size_t bytes = (binding.requests_at + elements_of(kernels.outputs_count) + 7) / 8 * 8;
  if (bytes > kMostArgumentBytes)
    throw tn::Failure(TN_UNSUPPORTED, "",
                      "a call of " + std::to_string(kernels.inputs_count) + " inputs and " +
                          std::to_string(kernels.outputs_count) + " outputs needs " + std::to_string(bytes) +
                          " bytes of arguments; CUDA kernels take " + std::to_string(kMostArgumentBytes));
  binding.arguments.resize(bytes);
  set(binding.arguments, kTableAt, binding.table.address());
  for (size_t k = 0; k < kernels.sizes.size(); ++k) {
    const tn_dim& dim = kernels.sizes[k];
    const Extent extent = {dim.coefficient, dim.offset, dim.symbol};
    std::memcpy(binding.arguments.data() + kExtentsAt + k * sizeof extent, &extent, sizeof extent);
  }
}

// Writes the parts of the operand that is TN_ROW_SPARSE into the arguments.
tn_status take_rows(Binding& binding, const tn_execution& execution, const tn_call& call) {
  const auto number = static_cast<uint32_t>(binding.rows);
  const tn_tensor* const tensor =
      number < call.inputs_count ? call.inputs[number] : call.outputs[number - call.inputs_count];
  if (tensor == nullptr) return TN_OK;  // not requested
  if (tensor->storage != TN_ROW_SPARSE || tensor->part == nullptr)
    return tn_fail(execution.errors, TN_MISUSE, nullptr, "a call over rows without its rows");
  const auto& part = *static_cast<const tn_row_sparse*>(tensor->part);
  set(binding.arguments, binding.rows_at, part.count);
  set(binding.arguments, binding.rows_at + 8, part.ids);
  set(binding.arguments, binding.rows_at + 16, static_cast<uint64_t>(part.capacity));
  return TN_OK;
}

// Writes the operands of a call into the arguments, or reports what is wrong with them.
tn_status take_operands(Binding& binding, const tn_execution& execution, const tn_call& call) {
  if (call.inputs_count != binding.inputs_count || call.outputs_count != binding.outputs_count)
    return tn_fail(execution.errors, TN_MISUSE, nullptr,
                   "a call with another number of operands than it was prepared for");
  std::vector<unsigned char>& arguments = binding.arguments;
  for (uint32_t i = 0; i < call.inputs_count; ++i) {
    if (call.inputs[i] == nullptr && (binding.optional.empty() || !binding.optional[i]))
      return tn_fail(execution.errors, TN_MISUSE, "inputs", "a call without one of its inputs");
    set(arguments, binding.inputs_at + 8 * size_t{i}, tn_data(call.inputs[i]));
  }
  for (uint32_t i = 0; i < call.outputs_count; ++i) {
    if (!binding.adds && call.requests[i] == TN_REQUEST_ADD)
      return tn_fail(execution.errors, TN_UNSUPPORTED, "outputs", "results of this call do not add on CUDA");
    set(arguments, binding.outputs_at + 8 * size_t{i}, tn_data(call.outputs[i]));
    arguments[binding.requests_at + i] =
        call.outputs[i] == nullptr ? static_cast<unsigned char>(TN_REQUEST_NONE) : call.requests[i];
  }
  for (size_t k = 0; k < binding.offsets.size(); ++k)
    set(arguments, binding.buffers_at + 8 * k, static_cast<char*>(call.workspace) + binding.offsets[k]);
  return binding.rows < 0 ? TN_OK : take_rows(binding, execution, call);
}

bool wants_nothing(const tn_call& call) {
  return std::all_of(call.requests, call.requests + call.outputs_count,
                     [](uint8_t request) { return request == TN_REQUEST_NONE; });
}

tn_status run(void* self, const tn_execution* execution, const tn_call* call) {
  Binding& binding = *static_cast<Binding*>(self);
  if (const tn_status status = take_operands(binding, *execution, *call); status != TN_OK) return status;
  if (wants_nothing(*call)) return TN_OK;
  const Stream& stream = binding.device.stream(execution->stream);
  set(binding.arguments, kSymbolsAt, execution->symbols);
  set(binding.arguments, kRandomAt, execution->random);
  set(binding.arguments, kFaultAt, stream.fault());
  const Driver& driver = binding.device.driver();
  void* parameters[] = {binding.arguments.data()};
  const Current current(binding.device.context());
  for (const Launch& launch : binding.launches) {
    set(binding.arguments, kStepAt, static_cast<uint64_t>(launch.step));
    const CUresult result = current.call([&] {
      return driver.cuLaunchKernel(binding.module->kernels()[launch.kernel], static_cast<unsigned>(launch.blocks), 1, 1,
                                   kThreads, 1, 1, 0, stream.handle(), parameters, nullptr);
    });
    if (result != CUDA_SUCCESS) return tn::guarded(execution->errors, [&] { check(driver, result, "cuLaunchKernel"); });
  }
  return TN_OK;
}

void destroy(void* self) { delete static_cast<Binding*>(self); }

}  // namespace

void bind(Device& device, const Kernels& kernels, tn_prepared* prepared) {
  auto binding = std::make_unique<Binding>(device, kernels);
  binding->launches = kernels.launches;
  binding->optional = kernels.optional;
  binding->inputs_count = kernels.inputs_count;
  binding->outputs_count = kernels.outputs_count;
  binding->rows = kernels.rows;
  binding->adds = kernels.adds;
  lay_out(*binding, kernels);
  uint64_t workspace = 0;
  for (const uint64_t bytes : kernels.buffers) {
    binding->offsets.push_back(workspace);
    workspace += (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
  }
  size_t kernels_count = 0;
  for (const Launch& launch : kernels.launches) kernels_count = std::max(kernels_count, launch.kernel + 1);
  binding->module = device.module(whole_text(kernels), kernels_count);
  prepared->traits = TN_TRAIT_CAPTURABLE;
  prepared->workspace_bytes = workspace;
  prepared->run = &run;
  prepared->destroy = &destroy;
  prepared->binding = binding.release();
}

}  // namespace tenon::cuda

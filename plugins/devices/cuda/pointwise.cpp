// Prepares pointwise programs and enqueues their kernels. SPDX-License-Identifier: Apache-2.0
#include "pointwise.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "device.h"
#include "source.h"

namespace tenon::cuda {

namespace {

constexpr int64_t kMostBlocks = 1 << 16;
// Bytes of arguments that every GPU and driver accepts.
constexpr size_t kMostArgumentBytes = 4096;
constexpr uint64_t kAlignment = 64;

int64_t pieces(int64_t count, int64_t length, int64_t most) {
  const int64_t n = count / length + (count % length != 0 ? 1 : 0);
  return std::clamp<int64_t>(n, 1, most);
}

// A prepared program.
struct Binding {
  Device* device;
  std::shared_ptr<const Module> module;
  std::vector<unsigned> blocks;   // launched for each kernel
  std::vector<uint64_t> offsets;  // of each buffer in the workspace, in bytes
  uint32_t inputs_count = 0;
  uint32_t outputs_count = 0;
  // The kernels' argument (source.h). run writes pointers and requests, so that a binding must not run twice at once.
  std::vector<unsigned char> arguments;
};

// Offsets in the argument, in bytes. The extents do not change from call to call, so bind writes them.
constexpr size_t kExtentsAt = 2 * sizeof(void*);  // after the pointers to symbols and random state
constexpr size_t kPointersAt = kExtentsAt + 2 * sizeof(Extent);

// The bounds of a grid.
struct Bounds {
  int64_t rows, columns, elements;
};

Bounds bounds_of(const tn_pointwise_site& site) {
  const auto bound = [](const tn_dim& dim, const char* what) {
    if (dim.symbol == TN_SYMBOL_NONE) return dim.offset;
    if (dim.bound < 0) throw tn::Failure(TN_INVALID, "", std::string("the number of ") + what + " has no bound");
    return dim.bound;
  };
  Bounds result = {bound(site.rows, "rows"), bound(site.columns, "columns"), 0};
  if (__builtin_mul_overflow(result.rows, result.columns, &result.elements) || result.elements > int64_t{1} << 60)
    throw tn::Failure(TN_INVALID, "",
                      "a grid of " + std::to_string(result.rows) + " rows and " + std::to_string(result.columns) +
                          " columns has too many elements");
  return result;
}

int64_t blocks_of(Grid grid, const Bounds& bounds, int64_t group) {
  switch (grid) {
    case Grid::kElements:
      return pieces(bounds.elements, kTile, kMostBlocks);
    case Grid::kRows:
      return pieces(bounds.rows, kThreads / group, kMostBlocks);
    case Grid::kStrips:
      return std::min(pieces(bounds.columns, kStripColumns, kMostBlocks) * pieces(bounds.rows, kStripRows, kMostStrips),
                      kMostBlocks);
    case Grid::kRowVector:
      return pieces(bounds.rows, kTile, kMostBlocks);
    case Grid::kColumnVector:
      return pieces(bounds.columns, kTile, kMostBlocks);
    case Grid::kOne:
      break;
  }
  return 1;
}

// Elements of a buffer at the bounds. Smaller sizes need no more.
int64_t buffer_elements(const Buffer& buffer, const Bounds& bounds) {
  switch (buffer.shape) {
    case BufferShape::kOne:
      return 1;
    case BufferShape::kRows:
      return bounds.rows;
    case BufferShape::kColumns:
      return bounds.columns;
    case BufferShape::kParts:
      return kMostParts;
    case BufferShape::kStrips:
      break;
  }
  return bounds.columns * pieces(bounds.rows, kStripRows, kMostStrips);
}

std::string dtype_text(tn_dtype dtype) {
  static constexpr const char* kCodes[] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"};
  const uint32_t code = tn_dtype_code(dtype);
  const std::string first = code < 7 ? kCodes[code] : "code " + std::to_string(code) + " bits ";
  return first + std::to_string(tn_dtype_bits(dtype));
}

void set(std::vector<unsigned char>& bytes, size_t at, const void* pointer) {
  std::memcpy(bytes.data() + at, &pointer, sizeof pointer);
}

std::unique_ptr<Binding> bind(Device& device, const tn_pointwise_site& site, uint64_t* workspace_bytes) {
  if (site.compute != TN_F32 && site.compute != TN_F64)
    throw tn::Failure(TN_UNSUPPORTED, "",
                      "float values of type " + dtype_text(site.compute) + "; offered are float32, float64");
  for (uint32_t i = 0; i < site.program->instructions_count; ++i)
    if (tn_op_info(site.program->instructions[i].op).op_class == TN_CLASS_NONE)
      throw tn::Failure(TN_UNSUPPORTED, "program", "the program has an operation that CUDA does not know");
  const Bounds bounds = bounds_of(site);
  tn_dtype missing = 0;
  const Source source = generate(site, &missing);
  if (missing != 0) throw tn::Failure(TN_UNSUPPORTED, "", "no elements of type " + dtype_text(missing) + " on CUDA");

  auto binding = std::make_unique<Binding>();
  binding->device = &device;
  binding->inputs_count = site.program->inputs_count;
  binding->outputs_count = site.program->outputs_count;
  const size_t pointers = size_t{binding->inputs_count} + binding->outputs_count + source.buffers.size();
  const size_t bytes = (kPointersAt + sizeof(void*) * pointers + binding->outputs_count + 7) / 8 * 8;
  if (bytes > kMostArgumentBytes)
    throw tn::Failure(TN_UNSUPPORTED, "",
                      "a program of " + std::to_string(binding->inputs_count) + " inputs and " +
                          std::to_string(binding->outputs_count) + " outputs needs " + std::to_string(bytes) +
                          " bytes of arguments; CUDA kernels take " + std::to_string(kMostArgumentBytes));
  binding->arguments.resize(bytes);
  const Extent extents[2] = {{site.rows.coefficient, site.rows.offset, site.rows.symbol},
                             {site.columns.coefficient, site.columns.offset, site.columns.symbol}};
  std::memcpy(binding->arguments.data() + kExtentsAt, extents, sizeof extents);

  const uint64_t width = site.compute == TN_F64 ? 8 : 4;
  for (const Buffer& buffer : source.buffers) {
    binding->offsets.push_back(*workspace_bytes);
    const uint64_t used = static_cast<uint64_t>(buffer_elements(buffer, bounds)) * width;
    *workspace_bytes += (used + kAlignment - 1) / kAlignment * kAlignment;
  }
  for (const Grid grid : source.grids)
    binding->blocks.push_back(static_cast<unsigned>(blocks_of(grid, bounds, source.group)));
  binding->module = device.module(source.text, source.grids.size());
  return binding;
}

tn_status run(void* self, const tn_execution* execution, const tn_call* call) {
  Binding& binding = *static_cast<Binding*>(self);
  if (call->inputs_count != binding.inputs_count || call->outputs_count != binding.outputs_count)
    return tn_fail(execution->errors, TN_MISUSE, nullptr, "the call has another number of operands than the program");
  std::vector<unsigned char>& arguments = binding.arguments;
  set(arguments, 0, execution->symbols);
  set(arguments, sizeof(void*), execution->random);
  size_t at = kPointersAt;
  for (uint32_t i = 0; i < call->inputs_count; ++i, at += sizeof(void*)) set(arguments, at, tn_data(call->inputs[i]));
  for (uint32_t i = 0; i < call->outputs_count; ++i, at += sizeof(void*)) set(arguments, at, tn_data(call->outputs[i]));
  for (const uint64_t offset : binding.offsets) {
    set(arguments, at, static_cast<char*>(call->workspace) + offset);
    at += sizeof(void*);
  }
  for (uint32_t i = 0; i < call->outputs_count; ++i, ++at)
    arguments[at] = call->outputs[i] == nullptr ? static_cast<unsigned char>(TN_REQUEST_NONE) : call->requests[i];

  const Driver& driver = binding.device->driver();
  CUstream stream = binding.device->stream(execution->stream);
  void* parameters[] = {arguments.data()};
  const Current current(binding.device->context());
  for (size_t k = 0; k < binding.blocks.size(); ++k) {
    const CUresult result = current.call([&] {
      return driver.cuLaunchKernel(binding.module->kernels()[k], binding.blocks[k], 1, 1, kThreads, 1, 1, 0, stream,
                                   parameters, nullptr);
    });
    if (result != CUDA_SUCCESS) return tn::guarded(execution->errors, [&] { check(driver, result, "cuLaunchKernel"); });
  }
  return TN_OK;
}

void destroy(void* self) { delete static_cast<Binding*>(self); }

tn_status prepare(void* device, const tn_services* /*services*/, const tn_errors* errors, const tn_pointwise_site* site,
                  tn_prepared* prepared) {
  return tn::guarded(errors, [&] {
    uint64_t workspace_bytes = 0;
    auto binding = bind(*static_cast<Device*>(device), *site, &workspace_bytes);
    prepared->traits = TN_TRAIT_CAPTURABLE;
    prepared->binding = binding.release();
    prepared->workspace_bytes = workspace_bytes;
    prepared->run = &run;
    prepared->destroy = &destroy;
  });
}

}  // namespace

const tn_pointwise_table* pointwise_table() {
  static constexpr tn_pointwise_table kTable = {sizeof(tn_pointwise_table), TN_OPSET, &prepare};
  return &kTable;
}

}  // namespace tenon::cuda

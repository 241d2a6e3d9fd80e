// A libcuda for tests, so that the whole plugin runs without a GPU: devices that use host memory and kernels compiled
// by a C++ compiler. Calls run in the calling thread before they return. Memory lies between guards, and calls need a
// current context, and pointers and streams of its device. If a kernel waits forever or writes outside its memory, the
// next wait fails, as on a GPU. There is one device, or as many as TENON_EMULATED_DEVICES says. For programs whose
// tests cannot call the functions of emulated_driver.h: TENON_EMULATED_INIT and TENON_EMULATED_LOAD are the results of
// cuInit and cuModuleLoadData, TENON_EMULATED_CAPABILITY is ten times the compute capability.
// SPDX-License-Identifier: Apache-2.0
#include "driver.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>

#include "image.h"

struct CUevent_st {};
struct CUfunc_st {
  std::string name;
  void* kernel;
  int (*launch)(void* kernel, unsigned blocks, unsigned threads, const void* arguments);
  size_t bytes;  // of the arguments
  CUcontext context;
};
struct CUmod_st {
  void* library;
  std::map<std::string, CUfunc_st> functions;
  CUcontext context;
};

namespace {

constexpr size_t kGuard = 4096;
constexpr unsigned char kMark = 0xa7;
constexpr size_t kMemoryBytes = size_t{1} << 30;
constexpr int kMostDevices = 8;

struct Memory {
  size_t bytes;
  CUcontext context;
};

// The state of the driver, one per process.
struct State {
  std::mutex mutex;  // of all but the contexts
  CUctx_st contexts[kMostDevices];
  std::map<CUdeviceptr, Memory> memory;
  std::map<const char*, size_t> pinned;
  size_t used = 0;
  int allocations_left = -1;  // until one fails; negative: none does
  CUresult sticky = CUDA_SUCCESS;
  bool keeps_calls = false;
  std::string calls, returned_calls, failing_call;
};
State& state() {
  static State only;
  return only;
}
thread_local std::vector<CUcontext> stack;
thread_local CUstream captured = nullptr;  // the stream that the thread captures

// A number of the environment.
int setting(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

int devices_count() { return std::clamp(setting("TENON_EMULATED_DEVICES", 1), 0, kMostDevices); }

bool intact(CUdeviceptr address, size_t bytes) {
  const auto* const first = reinterpret_cast<const unsigned char*>(address);
  for (size_t i = 0; i < kGuard; ++i)
    if (first[bytes + i] != kMark || first[-1 - static_cast<std::ptrdiff_t>(i)] != kMark) return false;
  return true;
}

// Whether an allocation of so many bytes is to fail. The mutex is held.
bool is_full(size_t bytes) {
  const bool fails = state().allocations_left >= 0 && state().allocations_left-- == 0;
  return fails || bytes > kMemoryBytes - state().used;
}

bool is_pinned(const void* address, size_t bytes) {
  const std::lock_guard lock(state().mutex);
  const auto* const first = static_cast<const char*>(address);
  auto next = state().pinned.upper_bound(first);
  if (next == state().pinned.begin()) return false;
  --next;
  return first + bytes <= next->first + next->second;
}

void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

// The line of a call that moves or sets memory.
std::string line_of(const char* call, size_t bytes) { return std::string(call) + " " + std::to_string(bytes); }

}  // namespace

namespace emulated {

CUcontext current_context() { return stack.empty() ? nullptr : stack.back(); }

bool is_device(CUdeviceptr address, size_t bytes) {
  const std::lock_guard lock(state().mutex);
  auto next = state().memory.upper_bound(address);
  if (next == state().memory.begin()) return false;
  --next;
  return address + bytes <= next->first + next->second.bytes && next->second.context == current_context();
}

void fail_from_now_on(CUresult result) {
  const std::lock_guard lock(state().mutex);
  state().sticky = result;
}

CUresult note(const std::string& call) {
  const std::lock_guard lock(state().mutex);
  const std::string line = (captured == nullptr ? "" : "captured ") + call;
  if (state().keeps_calls) state().calls += line + "\n";
  const std::string& failing = state().failing_call;
  if (failing.empty() || line.compare(0, failing.size(), failing) != 0) return CUDA_SUCCESS;
  if (captured != nullptr) captured->invalid = true;
  return CUDA_ERROR_NOT_PERMITTED;
}

CUresult outside_capture(const std::string& call) {
  if (const CUresult result = note(call); result != CUDA_SUCCESS) return result;
  if (captured == nullptr) return CUDA_SUCCESS;
  captured->invalid = true;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult enter(const std::string& call) {
  if (const CUresult result = outside_capture(call); result != CUDA_SUCCESS) return result;
  if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const std::lock_guard lock(state().mutex);
  return state().sticky;
}

CUresult enqueue(const std::string& call, CUstream stream, Work work, bool legal) {
  if (stream == nullptr || !stream->capturing) {
    const CUresult result = enter(call);
    if (result != CUDA_SUCCESS) return result;
    if (stream == nullptr || stream->context != current_context()) return CUDA_ERROR_INVALID_HANDLE;
    return work();
  }
  if (const CUresult result = note(call); result != CUDA_SUCCESS) return result;
  if (!legal || captured != stream || stream->context != current_context()) {
    stream->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  stream->work.push_back(std::move(work));
  return CUDA_SUCCESS;
}

CUresult begin_capture(CUstream stream) {
  captured = stream;
  stream->capturing = true;
  return CUDA_SUCCESS;
}

std::vector<Work> end_capture(CUstream stream) {
  captured = nullptr;
  stream->capturing = stream->invalid = false;
  return std::move(stream->work);
}

}  // namespace emulated

using emulated::current_context;
using emulated::enqueue;
using emulated::enter;
using emulated::is_device;

extern "C" {

void emulated_fail_after(int count) { state().allocations_left = count; }
size_t emulated_used() { return state().used; }
void emulated_clear_calls() {
  const std::lock_guard lock(state().mutex);
  state().calls.clear();
  state().keeps_calls = true;
}
const char* emulated_calls() {
  const std::lock_guard lock(state().mutex);
  state().returned_calls = state().calls;
  return state().returned_calls.c_str();
}
void emulated_fail_call(const char* line) {
  const std::lock_guard lock(state().mutex);
  state().failing_call = line == nullptr ? "" : line;
}

CUresult cuInit(unsigned) { return static_cast<CUresult>(setting("TENON_EMULATED_INIT", CUDA_SUCCESS)); }
CUresult cuDriverGetVersion(int* version) {
  *version = 13000;
  return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult result, const char** name) {
  switch (result) {
    case CUDA_ERROR_LAUNCH_FAILED:
      *name = "CUDA_ERROR_LAUNCH_FAILED";
      break;
    case CUDA_ERROR_ILLEGAL_ADDRESS:
      *name = "CUDA_ERROR_ILLEGAL_ADDRESS";
      break;
    case CUDA_ERROR_OUT_OF_MEMORY:
      *name = "CUDA_ERROR_OUT_OF_MEMORY";
      break;
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
      *name = "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED";
      break;
    case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
      *name = "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED";
      break;
    default:
      *name = "CUDA_ERROR";
  }
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult, const char** text) {
  *text = "emulated";
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int* count) {
  *count = devices_count();
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int number) {
  *device = number;
  return number >= 0 && number < devices_count() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuDeviceGetName(char* name, int bytes, CUdevice) {
  std::snprintf(name, static_cast<size_t>(bytes), "emulated GPU");
  return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem(size_t* bytes, CUdevice) {
  *bytes = kMemoryBytes;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  const int capability = setting("TENON_EMULATED_CAPABILITY", 90);
  *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? capability / 10
           : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? capability % 10
                                                                       : 0;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  const std::lock_guard lock(state().mutex);
  *context = &state().contexts[device];
  (*context)->device = device;
  ++(*context)->retained;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  const std::lock_guard lock(state().mutex);
  return state().contexts[device].retained-- > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}
CUresult cuCtxPushCurrent(CUcontext context) {
  if (context == nullptr || context->retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
  stack.push_back(context);
  return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent(CUcontext* context) {
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *context = stack.back();
  stack.pop_back();
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr* memory, size_t bytes) {
  if (const CUresult result = enter("cuMemAlloc"); result != CUDA_SUCCESS) return result;
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(state().mutex);
  if (is_full(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  const size_t whole = (bytes + 2 * kGuard + 255) / 256 * 256;
  auto* const made = static_cast<unsigned char*>(std::aligned_alloc(256, whole));
  if (made == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  std::memset(made, kMark, whole);
  *memory = reinterpret_cast<CUdeviceptr>(made + kGuard);
  state().memory[*memory] = {bytes, current_context()};
  state().used += bytes;
  return CUDA_SUCCESS;
}
CUresult cuMemFree(CUdeviceptr memory) {
  if (const CUresult result = enter("cuMemFree"); result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(state().mutex);
  const auto found = state().memory.find(memory);
  if (found == state().memory.end() || found->second.context != current_context()) return CUDA_ERROR_INVALID_VALUE;
  if (!intact(memory, found->second.bytes)) state().sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
  state().used -= found->second.bytes;
  state().memory.erase(found);
  std::free(reinterpret_cast<unsigned char*>(memory) - kGuard);
  return CUDA_SUCCESS;
}
CUresult cuMemAllocHost(void** memory, size_t bytes) {
  if (const CUresult result = enter("cuMemAllocHost"); result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(state().mutex);
  if (is_full(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  *memory = std::aligned_alloc(kGuard, (bytes + kGuard - 1) / kGuard * kGuard);
  if (*memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  state().pinned[static_cast<const char*>(*memory)] = bytes;
  state().used += bytes;
  return CUDA_SUCCESS;
}
CUresult cuMemFreeHost(void* memory) {
  if (const CUresult result = enter("cuMemFreeHost"); result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(state().mutex);
  const auto found = state().pinned.find(static_cast<const char*>(memory));
  if (found == state().pinned.end()) return CUDA_ERROR_INVALID_VALUE;
  state().used -= found->second;
  state().pinned.erase(found);
  std::free(memory);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  if (!is_device(to, bytes)) return CUDA_ERROR_INVALID_VALUE;
  const auto work = [=] {
    std::memcpy(pointer(to), from, bytes);
    return CUDA_SUCCESS;
  };
  return enqueue(line_of("cuMemcpyHtoDAsync", bytes), stream, work, is_pinned(from, bytes));
}
CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  if (!is_device(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  const auto work = [=] {
    std::memcpy(to, pointer(from), bytes);
    return CUDA_SUCCESS;
  };
  return enqueue(line_of("cuMemcpyDtoHAsync", bytes), stream, work, is_pinned(to, bytes));
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  if (!is_device(from, bytes) || !is_device(to, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return enqueue(line_of("cuMemcpyDtoDAsync", bytes), stream, [=] {
    std::memmove(pointer(to), pointer(from), bytes);
    return CUDA_SUCCESS;
  });
}
CUresult cuMemsetD8Async(CUdeviceptr memory, unsigned char value, size_t bytes, CUstream stream) {
  if (!is_device(memory, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return enqueue(line_of("cuMemsetD8Async", bytes), stream, [=] {
    std::memset(pointer(memory), value, bytes);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamCreate(CUstream* stream, unsigned) {
  if (const CUresult result = enter("cuStreamCreate"); result != CUDA_SUCCESS) return result;
  *stream = new CUstream_st{current_context(), false, false, {}};
  return CUDA_SUCCESS;
}
CUresult cuStreamDestroy(CUstream stream) {
  const bool mine = current_context() != nullptr && current_context() == stream->context;
  delete stream;
  return mine ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}
CUresult cuStreamSynchronize(CUstream stream) {
  if (const CUresult result = enter("cuStreamSynchronize"); result != CUDA_SUCCESS) return result;
  if (stream->context != current_context()) return CUDA_ERROR_INVALID_HANDLE;
  const std::lock_guard lock(state().mutex);
  for (const auto& [address, memory] : state().memory)
    if (!intact(address, memory.bytes)) state().sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
  return state().sticky;
}
CUresult cuStreamWaitEvent(CUstream, CUevent event, unsigned) {
  return event == nullptr ? CUDA_ERROR_INVALID_HANDLE : enter("cuStreamWaitEvent");
}
CUresult cuEventCreate(CUevent* event, unsigned) {
  *event = new CUevent_st;
  return enter("cuEventCreate");
}
CUresult cuEventDestroy(CUevent event) {
  delete event;
  return enter("cuEventDestroy");
}
CUresult cuEventRecord(CUevent event, CUstream) {
  return event == nullptr ? CUDA_ERROR_INVALID_HANDLE : enter("cuEventRecord");
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  if (const CUresult result = enter("cuModuleLoadData"); result != CUDA_SUCCESS) return result;
  if (const int asked = setting("TENON_EMULATED_LOAD", CUDA_SUCCESS); asked != CUDA_SUCCESS)
    return static_cast<CUresult>(asked);
  emulated::Image header = {};
  std::memcpy(&header, image, sizeof header);
  if (std::memcmp(header.magic, emulated::kMagic, sizeof header.magic) != 0) return CUDA_ERROR_INVALID_IMAGE;
  const emulated::Folder folder;
  std::ofstream(folder.file("module.so"), std::ios::binary)
      .write(static_cast<const char*>(image) + sizeof header, static_cast<std::streamsize>(header.bytes));
  void* const library = dlopen(folder.file("module.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return CUDA_ERROR_INVALID_IMAGE;
  *module = new CUmod_st{library, {}, current_context()};
  return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule module) {
  const bool mine = current_context() != nullptr && current_context() == module->context;
  dlclose(module->library);
  delete module;
  return mine ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  void* const kernel = dlsym(module->library, name);
  void* const launch = dlsym(module->library, "emulate");
  const void* const bytes = dlsym(module->library, "emulated_bytes");
  if (kernel == nullptr || launch == nullptr || bytes == nullptr) return CUDA_ERROR_NOT_FOUND;
  const CUfunc_st made = {name, kernel, reinterpret_cast<decltype(CUfunc_st::launch)>(launch),
                          *static_cast<const size_t*>(bytes), module->context};
  *function = &module->functions.try_emplace(name, made).first->second;
  return CUDA_SUCCESS;
}
CUresult cuLaunchKernel(CUfunction function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned threads_y,
                        unsigned threads_z, unsigned, CUstream stream, void** parameters, void**) {
  if (x == 0 || y != 1 || z != 1 || threads == 0 || threads > 1024 || threads_y != 1 || threads_z != 1)
    return CUDA_ERROR_INVALID_VALUE;
  if (function->context != current_context()) return CUDA_ERROR_INVALID_HANDLE;
  const std::string line =
      "cuLaunchKernel " + function->name + " " + std::to_string(x) + " x " + std::to_string(threads);
  // Results must not depend on the number of blocks.
  if (const char* const most = std::getenv("TENON_EMULATED_MOST_BLOCKS"))
    x = std::min(x, static_cast<unsigned>(std::atoi(most)));
  const auto* const first = static_cast<const char*>(parameters[0]);
  const std::vector<char> arguments(first, first + function->bytes);
  return enqueue(line, stream, [=] {
    if (function->launch(function->kernel, x, threads, arguments.data()) != 0)
      emulated::fail_from_now_on(CUDA_ERROR_LAUNCH_FAILED);
    return CUDA_SUCCESS;
  });
}

}  // extern "C"

// A libcuda for tests, so that the whole plugin runs without a GPU: one device that uses host memory and kernels
// compiled by a C++ compiler. Calls run in the calling thread before they return. Memory lies between guards, and calls
// need a current context and pointers of the device. If a kernel waits forever or writes outside its memory, the next
// wait fails, as on a GPU.
// SPDX-License-Identifier: Apache-2.0
#include <cuda.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

struct CUctx_st {
  int retained = 0;
};
struct CUstream_st {};
struct CUevent_st {};
struct CUfunc_st {
  void* kernel;
  int (*launch)(void* kernel, unsigned blocks, unsigned threads, const void* arguments);
};
struct CUmod_st {
  void* library;
  std::map<std::string, CUfunc_st> functions;
};

namespace {

constexpr size_t kGuard = 4096;
constexpr unsigned char kMark = 0xa7;
constexpr size_t kMemoryBytes = size_t{1} << 30;

// The state of the driver, one per process.
struct State {
  CUctx_st context;
  std::vector<CUcontext> stack;
  std::map<CUdeviceptr, size_t> memory;
  size_t used = 0;
  CUresult sticky = CUDA_SUCCESS;
};
State& state() {
  static State only;
  return only;
}

bool has_context() { return !state().stack.empty() && state().stack.back() == &state().context; }

// Whether the bytes lie in memory of the device.
bool is_device(CUdeviceptr address, size_t bytes) {
  auto next = state().memory.upper_bound(address);
  if (next == state().memory.begin()) return false;
  --next;
  return address + bytes <= next->first + next->second;
}

bool intact(CUdeviceptr address, size_t bytes) {
  const auto* const first = reinterpret_cast<const unsigned char*>(address);
  for (size_t i = 0; i < kGuard; ++i)
    if (first[bytes + i] != kMark || first[-1 - static_cast<std::ptrdiff_t>(i)] != kMark) return false;
  return true;
}

CUresult enter() {
  if (!has_context()) return CUDA_ERROR_INVALID_CONTEXT;
  return state().sticky;
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int* version) {
  *version = 13000;
  return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult result, const char** name) {
  *name = result == CUDA_ERROR_LAUNCH_FAILED     ? "CUDA_ERROR_LAUNCH_FAILED"
          : result == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : result == CUDA_ERROR_OUT_OF_MEMORY   ? "CUDA_ERROR_OUT_OF_MEMORY"
                                                 : "CUDA_ERROR";
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult, const char** text) {
  *text = "emulated";
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int* count) {
  *count = 1;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int number) {
  *device = number;
  return number == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
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
  *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9 : 0;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  ++state().context.retained;
  *context = &state().context;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice) {
  return state().context.retained-- > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}
CUresult cuCtxPushCurrent(CUcontext context) {
  if (context != &state().context || context->retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
  state().stack.push_back(context);
  return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent(CUcontext* context) {
  if (state().stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *context = state().stack.back();
  state().stack.pop_back();
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr* memory, size_t bytes) {
  if (const CUresult result = enter(); result != CUDA_SUCCESS) return result;
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > kMemoryBytes - state().used) return CUDA_ERROR_OUT_OF_MEMORY;
  const size_t whole = (bytes + 2 * kGuard + 255) / 256 * 256;
  auto* const made = static_cast<unsigned char*>(std::aligned_alloc(256, whole));
  if (made == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  std::memset(made, kMark, whole);
  *memory = reinterpret_cast<CUdeviceptr>(made + kGuard);
  state().memory[*memory] = bytes;
  state().used += bytes;
  return CUDA_SUCCESS;
}
CUresult cuMemFree(CUdeviceptr memory) {
  if (const CUresult result = enter(); result != CUDA_SUCCESS) return result;
  const auto found = state().memory.find(memory);
  if (found == state().memory.end()) return CUDA_ERROR_INVALID_VALUE;
  if (!intact(memory, found->second)) state().sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
  state().used -= found->second;
  state().memory.erase(found);
  std::free(reinterpret_cast<unsigned char*>(memory) - kGuard);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream) {
  if (const CUresult result = enter(); result != CUDA_SUCCESS) return result;
  if (!is_device(to, bytes)) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream) {
  if (const CUresult result = enter(); result != CUDA_SUCCESS) return result;
  if (!is_device(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(to, reinterpret_cast<void*>(from), bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream) {
  if (const CUresult result = enter(); result != CUDA_SUCCESS) return result;
  if (!is_device(from, bytes) || !is_device(to, bytes)) return CUDA_ERROR_INVALID_VALUE;
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemsetD8Async(CUdeviceptr memory, unsigned char value, size_t bytes, CUstream) {
  if (const CUresult result = enter(); result != CUDA_SUCCESS) return result;
  if (!is_device(memory, bytes)) return CUDA_ERROR_INVALID_VALUE;
  std::memset(reinterpret_cast<void*>(memory), value, bytes);
  return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream* stream, unsigned) {
  if (const CUresult result = enter(); result != CUDA_SUCCESS) return result;
  *stream = new CUstream_st;
  return CUDA_SUCCESS;
}
CUresult cuStreamDestroy(CUstream stream) {
  delete stream;
  return has_context() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}
CUresult cuStreamSynchronize(CUstream) {
  for (const auto& [memory, bytes] : state().memory)
    if (!intact(memory, bytes)) state().sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
  return enter();
}
CUresult cuStreamWaitEvent(CUstream, CUevent event, unsigned) {
  return event == nullptr ? CUDA_ERROR_INVALID_HANDLE : enter();
}
CUresult cuEventCreate(CUevent* event, unsigned) {
  *event = new CUevent_st;
  return enter();
}
CUresult cuEventDestroy(CUevent event) {
  delete event;
  return enter();
}
CUresult cuEventRecord(CUevent event, CUstream) { return event == nullptr ? CUDA_ERROR_INVALID_HANDLE : enter(); }

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  if (const CUresult result = enter(); result != CUDA_SUCCESS) return result;
  static std::atomic<int> number{0};
  std::string folder = (std::filesystem::temp_directory_path() / "tenon-emulated-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return CUDA_ERROR_OPERATING_SYSTEM;
  const std::string base = folder + "/module" + std::to_string(++number);
  std::ofstream(base + ".cpp") << "#include \"" EMULATED_KERNEL_HEADER "\"\n"
                               << static_cast<const char*>(image)
                               << "\nextern \"C\" int emulate(void* kernel, unsigned blocks, unsigned threads, const "
                                  "void* arguments) {\n  return emulator::run(reinterpret_cast<void (*)(Arguments)>("
                                  "kernel), blocks, threads, arguments);\n}\n";
  const std::string command = EMULATED_COMPILER
                              " -std=c++17 -O1 -w -fPIC -shared -fno-gnu-unique -fvisibility-inlines-hidden -o '" +
                              base + ".so' '" + base + ".cpp'";
  const bool built = std::system(command.c_str()) == 0;
  void* const library = built ? dlopen((base + ".so").c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (std::getenv("TENON_EMULATOR_KEEP") == nullptr) std::filesystem::remove_all(folder);
  if (library == nullptr) return CUDA_ERROR_INVALID_IMAGE;
  *module = new CUmod_st{library, {}};
  return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule module) {
  dlclose(module->library);
  delete module;
  return has_context() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  void* const kernel = dlsym(module->library, name);
  void* const launch = dlsym(module->library, "emulate");
  if (kernel == nullptr || launch == nullptr) return CUDA_ERROR_NOT_FOUND;
  *function =
      &module->functions.try_emplace(name, CUfunc_st{kernel, reinterpret_cast<decltype(CUfunc_st::launch)>(launch)})
           .first->second;
  return CUDA_SUCCESS;
}
CUresult cuLaunchKernel(CUfunction function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned threads_y,
                        unsigned threads_z, unsigned, CUstream, void** parameters, void**) {
  if (const CUresult result = enter(); result != CUDA_SUCCESS) return result;
  if (x == 0 || y != 1 || z != 1 || threads == 0 || threads > 1024 || threads_y != 1 || threads_z != 1)
    return CUDA_ERROR_INVALID_VALUE;
  if (function->launch(function->kernel, x, threads, parameters[0]) != 0) state().sticky = CUDA_ERROR_LAUNCH_FAILED;
  return CUDA_SUCCESS;
}

}  // extern "C"

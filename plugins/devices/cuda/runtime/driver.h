// The CUDA driver as a table of functions, and the meaning of its results. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>

#include <string>
#include <tenon/base.hpp>

#include "library.h"

namespace tenon::cuda {

constexpr const char* kDriverName = "libcuda.so.1";
constexpr const char* kDriverHint = "install the NVIDIA driver for this machine's GPU";

// cuda.h renames functions to their newest form (cuMemAlloc_v2); the table's members go by the same names.
// clang-format off
#define TENON_CUDA_FUNCTIONS(X) \
  X(cuInit) X(cuDriverGetVersion) X(cuGetErrorName) X(cuGetErrorString) X(cuDeviceGetCount) X(cuDeviceGet) \
  X(cuDeviceGetName) X(cuDeviceTotalMem) X(cuDeviceGetAttribute) X(cuDevicePrimaryCtxRetain) \
  X(cuDevicePrimaryCtxRelease) X(cuCtxPushCurrent) X(cuCtxPopCurrent) X(cuMemAlloc) X(cuMemFree) \
  X(cuMemcpyHtoDAsync) X(cuMemcpyDtoHAsync) X(cuMemcpyDtoDAsync) X(cuMemsetD8Async) X(cuStreamCreate) \
  X(cuStreamDestroy) X(cuStreamSynchronize) X(cuStreamWaitEvent) X(cuEventCreate) X(cuEventDestroy) \
  X(cuEventRecord) X(cuModuleLoadData) X(cuModuleUnload) X(cuModuleGetFunction) X(cuLaunchKernel) \
  X(cuMemAllocHost) X(cuMemFreeHost) X(cuStreamBeginCapture) X(cuStreamEndCapture) X(cuGraphInstantiate) \
  X(cuGraphLaunch) X(cuGraphDestroy) X(cuGraphExecDestroy)
// clang-format on
#define TENON_CUDA_MEMBER(name) decltype(&::name) name = nullptr;  // NOLINT(bugprone-macro-parentheses)

struct Driver {
  Library library;
  TENON_CUDA_FUNCTIONS(TENON_CUDA_MEMBER)
};

#undef TENON_CUDA_MEMBER

// Loads the driver and finds its functions. If there is no driver, `library` is not open, and why() has the reason.
[[nodiscard]] Driver load_driver();

[[nodiscard]] tn_status status_of(CUresult result);
// "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY: out of memory"
[[nodiscard]] std::string describe(const Driver& driver, CUresult result, const char* function);

inline void check(const Driver& driver, CUresult result, const char* function) {
  if (result != CUDA_SUCCESS) throw tn::Failure(status_of(result), "", describe(driver, result, function));
}

}  // namespace tenon::cuda

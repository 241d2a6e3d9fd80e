// Loads the CUDA driver and translates its results. SPDX-License-Identifier: Apache-2.0
#include "driver.h"

namespace tenon::cuda {

// Two macros, so that `name` is expanded before it becomes a string: cuda.h defines cuMemAlloc as cuMemAlloc_v2.
#define TENON_CUDA_FIND_EXPANDED(name) driver.library.find(#name, driver.name);
#define TENON_CUDA_FIND(name) TENON_CUDA_FIND_EXPANDED(name)

Driver load_driver() {
  Driver driver;
  driver.library = Library({kDriverName});
  if (!driver.library.is_open()) return driver;
  TENON_CUDA_FUNCTIONS(TENON_CUDA_FIND)
  return driver;
}

tn_status status_of(CUresult result) {
  switch (result) {
    case CUDA_SUCCESS:
      return TN_OK;
    case CUDA_ERROR_OUT_OF_MEMORY:
      return TN_OUT_OF_MEMORY;
    case CUDA_ERROR_INVALID_VALUE:
      return TN_INVALID;
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_INVALID_DEVICE:
      return TN_NOT_FOUND;
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
      return TN_UNSUPPORTED;
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_OPERATING_SYSTEM:
    case CUDA_ERROR_SYSTEM_NOT_READY:
      return TN_IO;
    default:
      return TN_INTERNAL;
  }
}

std::string describe(const Driver& driver, CUresult result, const char* function) {
  const char* name = nullptr;
  const char* words = nullptr;
  if (driver.cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) name = "an unknown result";
  if (driver.cuGetErrorString(result, &words) != CUDA_SUCCESS || words == nullptr) words = "no text";
  return std::string(function) + ": " + name + " (" + std::to_string(static_cast<int>(result)) + "): " + words;
}

}  // namespace tenon::cuda

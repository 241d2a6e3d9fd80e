// The versions of what the device cuda loads, from the libraries themselves: by their C interfaces, so that no header
// is needed. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace tenon_tests {

// A function of a loaded library; null if it has none. Libraries stay loaded.
template <class Function>
Function* function_of(void* library, const char* name) {
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library, name));
}

// The first of these that can be loaded, as the device looks for them; `name` becomes its name.
inline void* first_library(const std::vector<const char*>& names, std::string* name) {
  for (const char* const each : names) {
    void* const opened = dlopen(each, RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) continue;
    *name = each;
    return opened;
  }
  return nullptr;
}

// "13.1.0" of 130100.
inline std::string by_hundreds(uint64_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

// The version that a function without arguments returns; "not found" without a library.
inline std::string library_version(const std::vector<const char*>& names, const char* function) {
  std::string name;
  void* const library = first_library(names, &name);
  if (library == nullptr) return "not found";
  auto* const version = function_of<size_t()>(library, function);
  return (version == nullptr ? "unknown version" : by_hundreds(version())) + ", " + name;
}

// Name and version of the driver with the GPU's architecture, of NVRTC, cublasLt and cuDNN.
inline std::vector<std::pair<std::string, std::string>> versions() {
  std::vector<std::pair<std::string, std::string>> found;
  std::string name;
  void* const driver = first_library({"libcuda.so.1"}, &name);
  int cuda = 0;
  if (auto* const get = function_of<int(int*)>(driver, "cuDriverGetVersion")) get(&cuda);
  if (auto* const get = function_of<int(int*, int, int)>(driver, "cuDeviceGetAttribute")) {
    int major = 0, minor = 0;
    constexpr int kMajor = 75, kMinor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
    if (get(&major, kMajor, 0) == 0 && get(&minor, kMinor, 0) == 0)
      found.emplace_back("compute capability", std::to_string(major) + "." + std::to_string(minor));
  }
  std::string release;
  std::ifstream("/sys/module/nvidia/version") >> release;
  found.emplace_back("driver", "CUDA " + std::to_string(cuda / 1000) + "." + std::to_string(cuda % 1000 / 10) +
                                   (release.empty() ? "" : ", " + release));
  // The device takes none that is newer than the driver.
  const bool is_old = cuda < 13000;
  void* const compiler =
      is_old ? first_library({"libnvrtc.so.12"}, &name) : first_library({"libnvrtc.so.13", "libnvrtc.so.12"}, &name);
  int major = 0, minor = 0;
  if (auto* const get = function_of<int(int*, int*)>(compiler, "nvrtcVersion")) get(&major, &minor);
  found.emplace_back(
      "NVRTC", compiler == nullptr ? "not found" : std::to_string(major) + "." + std::to_string(minor) + ", " + name);
  found.emplace_back("cuBLAS", is_old
                                   ? library_version({"libcublasLt.so.12"}, "cublasLtGetVersion")
                                   : library_version({"libcublasLt.so.13", "libcublasLt.so.12"}, "cublasLtGetVersion"));
  found.emplace_back("cuDNN", library_version({"libcudnn.so.9"}, "cudnnGetVersion"));
  return found;
}

}  // namespace tenon_tests

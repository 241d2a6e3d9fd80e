// Products by cuBLAS, for comparison, if it can be loaded: by its C interface alone, so that no header is needed. Its
// handle works in the primary context, which is that of the device. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>

#include "tests/devices/gpu_check/call.h"

namespace tenon_tests {

class Cublas {
 public:
  explicit Cublas(DeviceUnderTest& device) {
    for (const char* const name : {"libcublas.so.13", "libcublas.so.12"})
      if (library_ == nullptr) library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    const auto* const native = device.table<tn_native_table>(TN_NATIVE);
    if (library_ == nullptr || native == nullptr) return;
    const auto create = reinterpret_cast<int (*)(void**)>(dlsym(library_, "cublasCreate_v2"));
    const auto set_stream = reinterpret_cast<int (*)(void*, void*)>(dlsym(library_, "cublasSetStream_v2"));
    multiply_ = reinterpret_cast<Multiply>(dlsym(library_, "cublasSgemm_v2"));
    if (create == nullptr || set_stream == nullptr || multiply_ == nullptr || create(&handle_) != 0) return;
    open_ = set_stream(handle_, native->stream(device.device(), nullptr)) == 0;
  }
  ~Cublas() {
    if (library_ == nullptr) return;
    const auto destroy = reinterpret_cast<int (*)(void*)>(dlsym(library_, "cublasDestroy_v2"));
    if (handle_ != nullptr && destroy != nullptr) destroy(handle_);
  }
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  [[nodiscard]] bool is_open() const { return open_; }
  // Enqueues C [m, n] = A [m, k] B [k, n], all by rows: cuBLAS, which has columns, computes the transposed product.
  void product(int64_t m, int64_t n, int64_t k, const void* a, const void* b, void* c) const {
    const float one = 1, zero = 0;
    const int rows = static_cast<int>(m), columns = static_cast<int>(n), depth = static_cast<int>(k);
    if (multiply_(handle_, 0, 0, columns, rows, depth, &one, static_cast<const float*>(b), columns,
                  static_cast<const float*>(a), depth, &zero, static_cast<float*>(c), columns) != 0)
      throw std::runtime_error("cublasSgemm failed");
  }

 private:
  using Multiply = int (*)(void*, int, int, int, int, int, const float*, const float*, int, const float*, int,
                           const float*, float*, int);
  void* library_ = nullptr;
  void* handle_ = nullptr;
  Multiply multiply_ = nullptr;
  bool open_ = false;
};

}  // namespace tenon_tests

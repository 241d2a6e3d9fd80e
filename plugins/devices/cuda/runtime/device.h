// An open GPU. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "blas/blas.h"
#include "cache.h"
#include "compiler.h"
#include "dnn/dnn.h"
#include "driver.h"
#include "stream.h"

namespace tenon::cuda {

// The driver and the GPU's primary context, which it retains. Shared by the device and its modules.
class Context {
 public:
  Context(Driver functions, CUdevice device);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Driver driver;
  [[nodiscard]] CUdevice device() const { return device_; }
  [[nodiscard]] CUcontext handle() const { return handle_; }

 private:
  const CUdevice device_;
  CUcontext handle_ = nullptr;
};

// Makes the context the calling thread's current one until it is destroyed, and then restores the previous one: the
// application may use CUDA too.
class Current {
 public:
  explicit Current(const Context& context)
      : driver_(context.driver), result_(driver_.cuCtxPushCurrent(context.handle())) {}
  ~Current() {
    CUcontext popped = nullptr;
    if (result_ == CUDA_SUCCESS) driver_.cuCtxPopCurrent(&popped);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  // Calls `function` if the context could be made current.
  template <typename Function>
  [[nodiscard]] CUresult call(const Function& function) const {
    return result_ == CUDA_SUCCESS ? function() : result_;
  }

 private:
  const Driver& driver_;
  const CUresult result_;
};

// A loaded image of compiled kernels: kernel0, kernel1 and so on.
class Module {
 public:
  // compiler: that made the image, for messages.
  Module(std::shared_ptr<const Context> context, const std::string& image, size_t kernels, const std::string& compiler);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  [[nodiscard]] const std::vector<CUfunction>& kernels() const { return kernels_; }
  [[nodiscard]] const Context& context() const { return *context_; }

 private:
  const std::shared_ptr<const Context> context_;
  CUmodule handle_ = nullptr;
  std::vector<CUfunction> kernels_;
};

class Device {
 public:
  // Throws tn::Failure: TN_NOT_FOUND names the library or the device that is missing.
  explicit Device(int32_t index);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  [[nodiscard]] const Context& context() const { return *context_; }
  [[nodiscard]] const Driver& driver() const { return context_->driver; }
  // The stream of a handle of the SDK; null is the device's own first stream.
  [[nodiscard]] Stream& stream(void* given) const { return given == nullptr ? *first_ : *static_cast<Stream*>(given); }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] uint64_t memory_bytes() const { return memory_bytes_; }
  // cublasLt; null if it cannot be used, and without_blas() has the reason.
  [[nodiscard]] const Blas* blas() const { return blas_.get(); }
  [[nodiscard]] const std::string& without_blas() const { return without_blas_; }

  // The module of a text with that number of kernels. Compiles a text unless the cache on disk has its image, and keeps
  // the module until the device is closed.
  [[nodiscard]] std::shared_ptr<const Module> module(const std::string& text, size_t kernels);

  // cuDNN; null if it cannot be used, and then the reason.
  [[nodiscard]] const std::shared_ptr<Dnn>& dnn() const { return dnn_; }
  [[nodiscard]] const std::string& without_dnn() const { return without_dnn_; }

 private:
  [[nodiscard]] std::string image(const std::string& text) const;

  std::shared_ptr<const Context> context_;
  std::shared_ptr<const Blas> blas_;
  std::string without_blas_;
  std::unique_ptr<Compiler> compiler_;
  int capability_ = 0;
  std::unique_ptr<Stream> first_;
  std::string name_;
  uint64_t memory_bytes_ = 0;
  const Cache cache_{cache_folder()};
  std::map<std::string, std::shared_ptr<const Module>> modules_;
  std::string without_dnn_;
  std::shared_ptr<Dnn> dnn_;
};

}  // namespace tenon::cuda

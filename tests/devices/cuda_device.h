// The built plugin "cuda", called as a host calls it. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <tenon/plugin.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "tests/devices/pointwise_case.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon::core;

class CudaPlugin {
 public:
  CudaPlugin() {
    const std::string path = std::string(tenon_tests::plugin_folder()) + "/devices/cuda.so";
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(dlerror());
    plugin_ = reinterpret_cast<tn_entry>(dlsym(library, TN_ENTRY_NAME))();
  }
  CudaPlugin(const CudaPlugin&) = delete;
  CudaPlugin& operator=(const CudaPlugin&) = delete;

  [[nodiscard]] const tn_plugin* plugin() const { return plugin_; }
  [[nodiscard]] const tn_device_type* type() const { return plugin_->devices[0]; }
  [[nodiscard]] const tn_services* services() const { return &services_; }
  [[nodiscard]] const tn_errors* errors() const { return &errors_; }

  // The last report.
  std::string message;
  tn_status code = TN_OK;

 private:
  static void report(void* self, const tn_error_report* report) {
    auto& plugin = *static_cast<CudaPlugin*>(self);
    plugin.code = report->code;
    plugin.message = report->message;
  }
  static const void* service(void*, const char*) { return nullptr; }

  const tn_plugin* plugin_ = nullptr;
  tn_errors errors_ = {sizeof(tn_errors), 0, this, &report};
  tn_services services_ = {sizeof(tn_services), TN_ABI_MAJOR, TN_ABI_MINOR, this, &service};
};

// The argument of prepare for a case; `bound` is the bound of rows that vary.
class CudaSite {
 public:
  CudaSite(const PointwiseCase& c, int64_t bound) : program_(c.program.view()) {
    for (size_t i = 0; i < c.program.inputs.size(); ++i) inputs_.push_back(input_type(c, i));
    for (size_t k = 0; k < c.program.outputs.size(); ++k) outputs_.push_back(output_type(c, k));
    site_.size = sizeof site_;
    site_.compute = c.compute;
    site_.program = &program_;
    site_.extents = c.program.extents.data();
    site_.inputs = inputs_.data();
    site_.outputs = outputs_.data();
    site_.rows = c.rows_vary ? tn_dim_symbol(TN_SYMBOL_SAMPLES) : tn_dim_constant(c.rows);
    if (c.rows_vary) site_.rows.bound = bound;
    site_.columns = c.columns_vary ? tn_dim_symbol(TN_SYMBOL_FIRST_RAGGED) : tn_dim_constant(c.columns);
    if (c.columns_vary) site_.columns.bound = c.columns + 100;
  }
  CudaSite(const CudaSite&) = delete;
  CudaSite& operator=(const CudaSite&) = delete;
  [[nodiscard]] const tn_pointwise_site& get() const { return site_; }
  [[nodiscard]] tn_pointwise_site& get() { return site_; }

 private:
  tn_program program_;
  std::vector<tn_dtype> inputs_, outputs_;
  tn_pointwise_site site_ = {};
};

// The first device, opened by the constructor. It must not be used if `present` is false.
class CudaDevice : public CudaPlugin {
 public:
  CudaDevice() {
    const int32_t count = type()->count(nullptr, errors());
    if (count < 0) throw std::runtime_error(message);
    present = count > 0;
    const tn_device_open open = {sizeof open, 0, services(), errors(), nullptr};
    if (present && type()->open(&open, &device_) != TN_OK) throw std::runtime_error(message);
  }
  ~CudaDevice() {
    if (present) type()->close(device_);
  }

  [[nodiscard]] void* device() const { return device_; }
  template <class Table>
  [[nodiscard]] const Table* table(const char* id) const {
    return static_cast<const Table*>(type()->extension(type()->user, id));
  }
  tn_status prepare(const CudaSite& site, tn_prepared* prepared) {
    *prepared = {sizeof(tn_prepared), 0, nullptr, 0, nullptr, nullptr};
    return table<tn_pointwise_table>(TN_POINTWISE)->prepare(device_, services(), errors(), &site.get(), prepared);
  }

  bool present = false;

 private:
  void* device_ = nullptr;
};

// Device memory that begins with the given bytes.
class CudaMemory {
 public:
  CudaMemory(CudaDevice& device, const std::vector<uint8_t>& bytes) : device_(device), bytes_(bytes.size()) {
    memory_ = device.type()->allocate(device.device(), device.errors(), bytes_);
    if (memory_ == nullptr) throw std::runtime_error(device.message);
    const tn_copy copy = {sizeof copy, TN_COPY_TO_DEVICE, nullptr, memory_, bytes.data(), bytes_};
    if (device.type()->copy(device.device(), device.errors(), &copy) != TN_OK ||
        device.type()->stream_wait(device.device(), device.errors(), nullptr) != TN_OK)
      throw std::runtime_error("copying to the device failed: " + device.message);
  }
  ~CudaMemory() {
    if (memory_ != nullptr) device_.type()->release(device_.device(), memory_, bytes_);
  }
  CudaMemory(CudaMemory&& other) noexcept : device_(other.device_), bytes_(other.bytes_), memory_(other.memory_) {
    other.memory_ = nullptr;
  }
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;

  [[nodiscard]] void* data() const { return memory_; }
  [[nodiscard]] std::vector<uint8_t> read() const {
    std::vector<uint8_t> bytes(bytes_);
    const tn_device_type& type = *device_.type();
    const tn_copy copy = {sizeof copy, TN_COPY_TO_HOST, nullptr, bytes.data(), memory_, bytes_};
    if (type.copy(device_.device(), device_.errors(), &copy) != TN_OK ||
        type.stream_wait(device_.device(), device_.errors(), nullptr) != TN_OK)
      throw std::runtime_error("copying from the device failed: " + device_.message);
    return bytes;
  }

 private:
  CudaDevice& device_;
  uint64_t bytes_;
  void* memory_ = nullptr;
};

}  // namespace tenon_tests

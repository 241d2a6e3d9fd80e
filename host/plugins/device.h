// An open device and its memory. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device.h>

#include <memory>
#include <string>

#include "host/plugins/error_sink.h"
#include "host/plugins/registry.h"

namespace tenon::host {

// An open device: its instance in the plugin, and its properties.
class Device {
 public:
  // Opens device number `index`; TN_NOT_FOUND if there is no such device.
  Device(const DeviceType& type, const tn_services* services, int32_t index);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  [[nodiscard]] const std::string& kind() const { return type_.kind; }
  [[nodiscard]] const std::string& who() const { return who_; }  // `device "cpu"`, for messages
  [[nodiscard]] const Origin& origin() const { return type_; }
  [[nodiscard]] const tn_device_type& table() const { return type_.table; }
  [[nodiscard]] void* instance() const { return instance_; }
  [[nodiscard]] const tn_services* services() const { return services_; }
  // Whether the host may read and write the device's memory, and whether kernels may read the host's memory.
  [[nodiscard]] bool host_memory() const { return properties_.host_memory != 0; }
  [[nodiscard]] bool reads_host_memory() const { return table().description->dlpack_type == kDLCPU; }
  // Returns a tensor of the device without shape and data.
  [[nodiscard]] tn_tensor tensor(tn_dtype dtype, int32_t storage) const;
  // Copies in the order of the device's first stream. kind: TN_COPY_*.
  void copy(void* to, const void* from, uint64_t bytes, int32_t kind);
  // Returns a primitive table by id; null if the device does not offer it.
  template <typename Table>
  [[nodiscard]] const Table* primitives(const char* id) const {
    if (type_.table.extension == nullptr) return nullptr;
    return static_cast<const Table*>(call_plugin(type_, who_, {Tag::kAny, "extension"}, type_.table.extension, id));
  }

 private:
  void close() noexcept;

  const DeviceType& type_;
  std::string who_;
  const tn_services* services_;
  void* instance_ = nullptr;
  tn_device_properties properties_ = {};
};

// A block of device memory.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(std::shared_ptr<Device> device, uint64_t bytes);
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] uint64_t size() const { return bytes_; }

 private:
  void release() noexcept;

  std::shared_ptr<Device> device_;
  std::byte* data_ = nullptr;
  uint64_t bytes_ = 0;
};

// A call that a component prepared; owns its binding.
class Prepared {
 public:
  Prepared() { prepared_.size = sizeof prepared_; }
  ~Prepared();
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  // Prepares the call with `function`, a prepare function of `by`; `arguments` are all but its last one. Call it once.
  template <typename... Parameters, typename... Arguments>
  void prepare(const Origin& by, ErrorSink& errors, tn_status (*function)(Parameters...), Arguments... arguments) {
    by_ = by;
    who_ = errors.who();
    errors.check(call_plugin(by, who_, {Tag::kSetup, "prepare"}, function, arguments..., &prepared_));
  }
  tn_status run(const tn_execution& execution, const tn_call& call) const {
    return call_plugin(by_, who_, {Tag::kRun, "run", this}, prepared_.run, prepared_.binding, &execution, &call);
  }
  // The component that failures of prepare and run name.
  [[nodiscard]] const std::string& who() const { return who_; }
  [[nodiscard]] const tn_prepared& operator*() const { return prepared_; }
  [[nodiscard]] const tn_prepared* operator->() const { return &prepared_; }

 private:
  tn_prepared prepared_ = {};
  Origin by_;
  std::string who_;
};

}  // namespace tenon::host

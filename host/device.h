// An open device and its memory. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device.h>

#include <memory>
#include <string>

#include "host/registry.h"

namespace tenon {

class Device {
 public:
  // Opens device number `index`; TN_NOT_FOUND when there is none.
  Device(const DeviceType& type, const tn_services* services, int32_t index);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  [[nodiscard]] const std::string& kind() const { return type_.kind; }
  [[nodiscard]] const std::string& plugin() const { return type_.plugin; }
  [[nodiscard]] const tn_device_type& table() const { return type_.table; }
  [[nodiscard]] void* instance() const { return instance_; }
  [[nodiscard]] const tn_services* services() const { return services_; }
  [[nodiscard]] bool host_memory() const { return properties_.host_memory != 0; }
  // A primitive table by id, or null where the device does not offer it.
  template <typename Table>
  [[nodiscard]] const Table* primitives(const char* id) const {
    return type_.table.extension == nullptr ? nullptr : static_cast<const Table*>(type_.table.extension(id));
  }

 private:
  const DeviceType& type_;
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
  std::shared_ptr<Device> device_;
  std::byte* data_ = nullptr;
  uint64_t bytes_ = 0;
};

// Owns a prepared call.
class Prepared {
 public:
  Prepared() { prepared_.size = sizeof prepared_; }
  ~Prepared();
  Prepared(Prepared&& other) noexcept;
  Prepared& operator=(Prepared&& other) noexcept;
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  [[nodiscard]] tn_prepared* get() { return &prepared_; }
  [[nodiscard]] const tn_prepared& operator*() const { return prepared_; }

 private:
  tn_prepared prepared_ = {};
};

}  // namespace tenon

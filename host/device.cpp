// SPDX-License-Identifier: Apache-2.0
#include "host/device.h"

#include <utility>

#include "core/error.h"
#include "host/error_sink.h"

namespace tenon {

Device::Device(const DeviceType& type, const tn_services* services, int32_t index) : type_(type), services_(services) {
  ErrorSink sink("device \"" + type.kind + "\"");
  const int32_t present = type.table.count(sink.get());
  if (present < 0) sink.check(TN_PLUGIN_FAULT);
  if (index < 0 || index >= present)
    fail(TN_NOT_FOUND, "device \"", type.kind, "\" number ", index, ": ", present, " present");
  sink.check(type.table.open(services, sink.get(), index, &instance_));
  properties_.size = sizeof properties_;
  const tn_status status = type.table.properties(instance_, &properties_);
  if (status != TN_OK) {
    type.table.close(instance_);
    sink.check(status);
  }
}

Device::~Device() { type_.table.close(instance_); }

DeviceMemory::DeviceMemory(std::shared_ptr<Device> device, uint64_t bytes) : device_(std::move(device)), bytes_(bytes) {
  if (bytes == 0) return;
  ErrorSink sink("device \"" + device_->kind() + "\"");
  data_ = static_cast<std::byte*>(device_->table().allocate(device_->instance(), sink.get(), bytes));
  if (data_ == nullptr) sink.check(TN_OUT_OF_MEMORY);
}

DeviceMemory::~DeviceMemory() {
  if (data_ != nullptr) device_->table().release(device_->instance(), data_, bytes_);
}

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept
    : device_(std::move(other.device_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Prepared::~Prepared() {
  if (prepared_.destroy != nullptr && prepared_.binding != nullptr) prepared_.destroy(prepared_.binding);
}

Prepared::Prepared(Prepared&& other) noexcept : prepared_(other.prepared_) { other.prepared_ = {}; }

Prepared& Prepared::operator=(Prepared&& other) noexcept {
  std::swap(prepared_, other.prepared_);
  return *this;
}

}  // namespace tenon

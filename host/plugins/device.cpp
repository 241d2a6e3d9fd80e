// SPDX-License-Identifier: Apache-2.0
#include "host/plugins/device.h"

#include <utility>

#include "core/alignment.h"
#include "core/error.h"
#include "core/shape.h"
#include "host/plugins/error_sink.h"

namespace tenon::host {

Device::Device(const DeviceType& type, const tn_services* services, int32_t index)
    : type_(type), who_("device \"" + type.kind + "\""), services_(services) {
  ErrorSink sink(who_, type.tags);
  const tn_device_type& table = type.table;
  const int32_t present = call_plugin(type, who_, {Tag::kSetup, "count"}, table.count, sink.get());
  if (present < 0) sink.check(TN_PLUGIN_FAULT);
  if (index < 0 || index >= present)
    fail(
        TN_NOT_FOUND, who_, ": ",
        present == 0 ? "not present on this machine" : text("unknown number ", index, "; expected 0 to ", present - 1));
  bool open = true;
  try {
    const tn_status opened =
        call_plugin(type, who_, {Tag::kSetup, "open"}, table.open, services, sink.get(), index, &instance_);
    open = opened == TN_OK;
    sink.check(opened);
    properties_.size = sizeof properties_;
    sink.check(call_plugin(type, who_, {Tag::kAny, "properties"}, table.properties, instance_, &properties_));
  } catch (...) {
    if (open) close();
    throw;
  }
}

Device::~Device() { close(); }

void Device::close() noexcept { free_by_plugin(type_, who_, {Tag::kSetup, "close"}, type_.table.close, instance_); }

tn_tensor Device::tensor(tn_dtype dtype, int32_t storage) const {
  tn_tensor tensor = {};
  tensor.size = sizeof tensor;
  tensor.storage = storage;
  tensor.alignment = kCacheLine;
  tensor.dl.device = {static_cast<DLDeviceType>(table().description->dlpack_type), 0};
  tensor.dl.dtype = dlpack_type(dtype);
  return tensor;
}

void Device::copy(void* to, const void* from, uint64_t bytes, int32_t kind) {
  ErrorSink sink(who_, type_.tags);
  sink.check(
      call_plugin(type_, who_, {Tag::kRun, "copy", this}, type_.table.copy, instance_, nullptr, to, from, bytes, kind));
}

DeviceMemory::DeviceMemory(std::shared_ptr<Device> device, uint64_t bytes) : device_(std::move(device)), bytes_(bytes) {
  if (bytes == 0) return;
  ErrorSink sink(device_->who(), device_->origin().tags);
  const auto allocate = [](const tn_device_type* table, void* instance, const tn_errors* errors, uint64_t size,
                           std::byte** to) { *to = static_cast<std::byte*>(table->allocate(instance, errors, size)); };
  try {
    call_plugin(device_->origin(), device_->who(), {Tag::kSetup, "allocate"}, +allocate, &device_->table(),
                device_->instance(), sink.get(), bytes, &data_);
  } catch (...) {
    release();
    throw;
  }
  if (data_ == nullptr) sink.check(TN_OUT_OF_MEMORY);
}

DeviceMemory::~DeviceMemory() { release(); }

void DeviceMemory::release() noexcept {
  if (data_ == nullptr) return;
  free_by_plugin(device_->origin(), device_->who(), {Tag::kSetup, "release"}, device_->table().release,
                 device_->instance(), static_cast<void*>(data_), bytes_);
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
  if (prepared_.destroy != nullptr && prepared_.binding != nullptr)
    free_by_plugin(by_, who_, {Tag::kSetup, "destroy"}, prepared_.destroy, prepared_.binding);
}

}  // namespace tenon::host

// SPDX-License-Identifier: Apache-2.0
#include "host/plugins/device.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/alignment.h"
#include "core/error.h"
#include "core/shape.h"
#include "host/plugins/error_sink.h"
#include "host/plugins/loader.h"

namespace tenon::host {

Device::Device(const DeviceType& type, const Services& services, int32_t index, FindProviders find)
    : type_(type),
      who_("device \"" + type.kind + (index == 0 ? "" : ":" + std::to_string(index)) + "\""),
      services_(services),
      find_providers_(std::move(find)),
      shared_(services, &lent_, who_) {
  lent_ = {sizeof lent_, index, type_.kind.c_str(), nullptr, this, nullptr};
  lent_.table = [](void* self, const char* id, uint32_t bytes) -> const void* {
    try {
      return id == nullptr ? nullptr : static_cast<const Device*>(self)->table_by_id(id, bytes);
    } catch (...) {  // as if the device did not offer it: out of memory, or a fault that ThreadTags keeps
      return nullptr;
    }
  };
  ErrorSink sink(who_, type.tags);
  const tn_device_type& table = type.table;
  const int32_t present = call_plugin(type, who_, {Tag::kSetup, "count"}, table.count, table.user, sink.get());
  if (present < 0) sink.check(TN_PLUGIN_FAULT);
  if (index < 0 || index >= present)
    fail(
        TN_NOT_FOUND, who_, ": ",
        present == 0 ? "not present on this machine" : text("unknown number ", index, "; expected 0 to ", present - 1));
  bool open = true;
  try {
    const tn_device_open arguments = {sizeof arguments, index, services.tables(type), sink.get(), table.user};
    const tn_status opened = call_plugin(type, who_, {Tag::kSetup, "open"}, table.open, &arguments, &instance_);
    open = opened == TN_OK;
    sink.check(opened);
    properties_.size = sizeof properties_;
    lent_.instance = instance_;
    sink.check(
        call_plugin(type, who_, {Tag::kAny, "properties"}, table.properties, instance_, sink.get(), &properties_));
  } catch (...) {
    if (open) close();
    throw;
  }
}

Device::~Device() {
  shared_.clear();
  close();
}

void Device::close() noexcept { free_by_plugin(type_, who_, {Tag::kSetup, "close"}, type_.table.close, instance_); }

tn_tensor Device::tensor(tn_dtype dtype, int32_t storage) const {
  tn_tensor tensor = {};
  tensor.size = sizeof tensor;
  tensor.storage = storage;
  tensor.alignment = kCacheLine;
  tensor.dl.device = {static_cast<DLDeviceType>(table().description->dlpack_type), lent_.index};
  tensor.dl.dtype = dlpack_type(dtype);
  return tensor;
}

void* Device::create_stream() {
  ErrorSink sink(who_, type_.tags);
  void* stream = nullptr;
  sink.check(call_plugin(type_, who_, {Tag::kSetup, "stream_create"}, type_.table.stream_create, instance_, sink.get(),
                         &stream));
  return stream;
}

void Device::destroy_stream(void* stream) noexcept {
  free_by_plugin(type_, who_, {Tag::kSetup, "stream_destroy"}, type_.table.stream_destroy, instance_, stream);
}

void Device::copy(void* stream, void* to, const void* from, uint64_t bytes, int32_t kind) {
  ErrorSink sink(who_, type_.tags);
  const tn_copy what = {sizeof what, kind, stream, to, from, bytes};
  const std::lock_guard lock(copying_);
  sink.check(call_plugin(type_, who_, {Tag::kRun, "copy", this}, type_.table.copy, instance_, sink.get(), &what));
}

void Device::fill(void* stream, void* to, uint8_t value, uint64_t bytes) {
  ErrorSink sink(who_, type_.tags);
  const std::lock_guard lock(copying_);
  sink.check(call_plugin(type_, who_, {Tag::kRun, "fill", this}, type_.table.fill, instance_, sink.get(), stream, to,
                         value, bytes));
}

void Device::wait(void* stream, const std::string& who) {
  ErrorSink sink(who_, type_.tags);
  sink.check(
      call_plugin(type_, who_, {Tag::kAny, "stream_wait"}, type_.table.stream_wait, instance_, sink.get(), stream),
      who);
}

const void* Device::table_by_id(const char* id, size_t bytes) const {
  const std::lock_guard lock(mutex_);
  if (const auto known = tables_.find(id); known != tables_.end()) return known->second.get(bytes);
  if (type_.table.extension == nullptr) return nullptr;
  const void* const given =
      call_plugin(type_, who_, {Tag::kAny, "extension"}, type_.table.extension, type_.table.user, id);
  OfferedTable table = adopt(given, id, type_.plugin);
  if (!table.missing().empty()) table = OfferedTable();
  return tables_.emplace(id, std::move(table)).first->second.get(bytes);
}

OfferedTable Device::adopt(const void* given, const char* id, const std::string& plugin) const {
  try {
    return {given, id, plugin};
  } catch (const Error& error) {
    throw error.with_context(who_);
  }
}

const Device::AllProvided& Device::provided(const std::string& id) {
  const SetupLock lock = lock_setup(type_, {Tag::kSetup, "open"});
  if (const auto known = providers_.find(id); known != providers_.end()) return known->second;
  AllProvided all;
  if (find_providers_)
    for (const Provider* provider : find_providers_(id, all.refused)) {
      OfferedTable table = adopt(provider->table.table, provider->table.id, provider->plugin);
      if (const std::string missing = table.missing(); !missing.empty())
        all.refused.push_back(
            {provider->table.name, provider->plugin, text("its table has no function \"", missing, "\"")});
      else
        all.found.push_back({provider, std::move(table)});
    }
  return providers_.emplace(id, std::move(all)).first->second;
}

template <typename Table>
DeviceMemory::DeviceMemory(std::shared_ptr<Device> device, uint64_t bytes, const Table& table)
    : device_(std::move(device)), release_(table.release), bytes_(bytes) {
  if (bytes == 0) return;
  ErrorSink sink(device_->who(), device_->origin().tags);
  const auto allocate = [](const Table* from, void* instance, const tn_errors* errors, uint64_t size, std::byte** to) {
    *to = static_cast<std::byte*>(from->allocate(instance, errors, size));
  };
  try {
    call_plugin(device_->origin(), device_->who(), {Tag::kSetup, "allocate"}, +allocate, &table, device_->instance(),
                sink.get(), bytes, &data_);
  } catch (...) {
    release();
    throw;
  }
  if (data_ == nullptr) sink.check(TN_OUT_OF_MEMORY);
}

DeviceMemory::DeviceMemory(const std::shared_ptr<Device>& device, uint64_t bytes)
    : DeviceMemory(device, bytes, device->table()) {}

DeviceMemory DeviceMemory::for_copies(std::shared_ptr<Device> device, uint64_t bytes) {
  const auto& table = *device->primitives<tn_host_memory_table>(TN_HOST_MEMORY);
  return {std::move(device), bytes, table};
}

DeviceMemory::~DeviceMemory() { release(); }

void DeviceMemory::release() noexcept {
  if (data_ == nullptr) return;
  free_by_plugin(device_->origin(), device_->who(), {Tag::kSetup, "release"}, release_, device_->instance(),
                 static_cast<void*>(data_), bytes_);
}

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept
    : device_(std::move(other.device_)),
      release_(other.release_),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(release_, other.release_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Prepared::~Prepared() {
  if (prepared_.destroy == nullptr || prepared_.binding == nullptr) return;
  const TaggedFunction destroy = {Tag::kSetup, "destroy"};
  const SetupLock setup = lock_setup(by_, destroy);
  const auto entered = enter();
  free_by_plugin(by_, who_, destroy, prepared_.destroy, prepared_.binding);
}

Prepared::Prepared(Prepared&& other) noexcept
    : passed_over(std::move(other.passed_over)),
      shared_(std::move(other.shared_)),
      prepared_(std::exchange(other.prepared_, tn_prepared{})),
      by_(std::move(other.by_)),
      who_(std::move(other.who_)) {}

Prepared& Prepared::operator=(Prepared&& other) noexcept {
  std::swap(passed_over, other.passed_over);
  std::swap(shared_, other.shared_);
  std::swap(prepared_, other.prepared_);
  std::swap(by_, other.by_);
  std::swap(who_, other.who_);
  return *this;
}

NewerOpcode newer_opcode(uint32_t opset, const tn_program& program) {
  for (uint32_t i = 0; i < program.instructions_count; ++i)
    if (tn_op_info(program.instructions[i].op).opset > opset) return {program.instructions[i].op, opset};
  return {};
}

std::string unknown_opcode(const NewerOpcode& newer) {
  const tn_opcode row = tn_op_info(newer.op);
  return text("it knows the opcodes of opset ", newer.opset, "; ", row.name, " is of opset ", row.opset);
}

std::string reason_of(const Error& error, const std::string& who) {
  const std::string label = who + ": ";
  return error.message().starts_with(label) ? error.message().substr(label.size()) : error.message();
}

void refuse(const Device& device, const NewerOpcode& newer, const std::string& who) {
  const tn_opcode row = tn_op_info(newer.op);
  fail(TN_UNSUPPORTED, ComponentName{who}, "device \"", device.kind(), "\" knows the opcodes up to opset ", newer.opset,
       ", but the program has \"", row.name, "\" of opset ", row.opset);
}

}  // namespace tenon::host

// SPDX-License-Identifier: Apache-2.0
#include "check/watch/open_device.h"

#include <tenon/tenon.h>

#include <cstdlib>
#include <cstring>

#include "check/cases/fault.h"
#include "check/watch/other_host.h"

namespace tenon::check {

namespace {

// The memory that a host would count.
void* allocate_memory(void*, uint64_t bytes) { return std::aligned_alloc(64, (bytes + 63) / 64 * 64); }
void release_memory(void*, void* memory, uint64_t) { std::free(memory); }

void keep_report(void* self, const tn_error_report* report) {
  *static_cast<std::string*>(self) = report->message == nullptr ? "" : report->message;
}

const void* service(void* self, const char* id) {
  return std::strcmp(id, TN_MEMORY) == 0 ? self : nullptr;  // the log is optional
}

const tn_device_type* type_of(const tn_plugin& plugin, const std::string& kind) {
  for (uint32_t i = 0; i < plugin.devices_count; ++i)
    if (kind == plugin.devices[i]->description->kind) return plugin.devices[i];
  throw Fault("its code has no device \"" + kind + "\"");
}

}  // namespace

OpenDevice::OpenDevice(const std::string& file, const std::string& kind)
    : loaded_(file),
      type_(type_of(
          *(Lending::is_on() ? plugin_in_other_host(*loaded_.descriptor(), "device", kind) : loaded_.descriptor()),
          kind)),
      errors_{sizeof errors_, 0, &reported_, keep_report},
      memory_{sizeof memory_, 0, nullptr, allocate_memory, release_memory},
      services_{sizeof services_, TN_ABI_MAJOR, TN_ABI_MINOR, &memory_, service} {
  const int32_t present = type_->count(type_->user, &errors_);
  if (present < 0) require(TN_PLUGIN_FAULT, "count");
  if (present == 0) throw Skip("the device is not present here");
  const tn_device_open open = {sizeof open, 0, &services_, &errors_, type_->user};
  require(type_->open(&open, &instance_), "open");
}

OpenDevice::~OpenDevice() { type_->close(instance_); }

void OpenDevice::require(tn_status status, const char* function) const {
  if (status == TN_OK) return;
  throw Fault(std::string(function) + " fails: " + tn_status_text(status) +
              (reported_.empty() ? "" : ": " + reported_));
}

tn_device_properties OpenDevice::properties() {
  tn_device_properties result = {};
  result.size = sizeof result;
  require(type_->properties(instance_, &errors_, &result), "properties");
  return result;
}

void OpenDevice::copy(int32_t kind, void* stream, void* to, const void* from, uint64_t bytes) {
  const tn_copy what = {sizeof what, kind, stream, to, from, bytes};
  require(type_->copy(instance_, &errors_, &what), "copy");
}
void OpenDevice::fill(void* stream, void* memory, uint8_t value, uint64_t bytes) {
  require(type_->fill(instance_, &errors_, stream, memory, value, bytes), "fill");
}
void OpenDevice::wait(void* stream) { require(type_->stream_wait(instance_, &errors_, stream), "stream_wait"); }
void OpenDevice::record(void* event, void* stream) {
  require(type_->event_record(instance_, &errors_, event, stream), "event_record");
}
void OpenDevice::wait_for(void* event, void* stream) {
  require(type_->event_wait(instance_, &errors_, event, stream), "event_wait");
}

void* OpenDevice::allocate(uint64_t bytes) {
  void* const memory = type_->allocate(instance_, &errors_, bytes);
  if (memory == nullptr) require(TN_OUT_OF_MEMORY, "allocate");
  return memory;
}
void OpenDevice::release(void* memory, uint64_t bytes) { type_->release(instance_, memory, bytes); }

OpenDevice::Object::Object(OpenDevice& device, Kind kind) : device_(device), kind_(kind) {
  const auto create = kind == kStream ? device.type_->stream_create : device.type_->event_create;
  device.require(create(device.instance_, &device.errors_, &handle_),
                 kind == kStream ? "stream_create" : "event_create");
}
OpenDevice::Object::~Object() {
  (kind_ == kStream ? device_.type_->stream_destroy : device_.type_->event_destroy)(device_.instance_, handle_);
}

}  // namespace tenon::check

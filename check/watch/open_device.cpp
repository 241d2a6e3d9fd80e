// SPDX-License-Identifier: Apache-2.0
#include "check/watch/open_device.h"

#include <tenon/tenon.h>

#include "check/cases/fault.h"
#include "check/watch/other_host.h"

namespace tenon::check {

namespace {

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
          kind)) {
  const int32_t present = type_->count(type_->user, lent_.errors());
  if (present < 0) require(TN_PLUGIN_FAULT, "count");
  if (present == 0) throw Skip("the device is not present here");
  const tn_device_open open = {sizeof open, 0, lent_.services(), lent_.errors(), type_->user};
  require(type_->open(&open, &instance_), "open");
}

OpenDevice::~OpenDevice() { type_->close(instance_); }

void OpenDevice::require(tn_status status, const char* function) const {
  if (status == TN_OK) return;
  throw Fault(std::string(function) + " fails: " + tn_status_text(status) + lent_.reason());
}

tn_device_properties OpenDevice::properties() {
  tn_device_properties result = {};
  result.size = sizeof result;
  require(type_->properties(instance_, lent_.errors(), &result), "properties");
  return result;
}

void OpenDevice::copy(int32_t kind, void* stream, void* to, const void* from, uint64_t bytes) {
  const tn_copy what = {sizeof what, kind, stream, to, from, bytes};
  require(type_->copy(instance_, lent_.errors(), &what), "copy");
}
void OpenDevice::fill(void* stream, void* memory, uint8_t value, uint64_t bytes) {
  require(type_->fill(instance_, lent_.errors(), stream, memory, value, bytes), "fill");
}
void OpenDevice::wait(void* stream) { require(type_->stream_wait(instance_, lent_.errors(), stream), "stream_wait"); }
void OpenDevice::record(void* event, void* stream) {
  require(type_->event_record(instance_, lent_.errors(), event, stream), "event_record");
}
void OpenDevice::wait_for(void* event, void* stream) {
  require(type_->event_wait(instance_, lent_.errors(), event, stream), "event_wait");
}

void* OpenDevice::allocate(uint64_t bytes) {
  void* const memory = type_->allocate(instance_, lent_.errors(), bytes);
  if (memory == nullptr) require(TN_OUT_OF_MEMORY, "allocate");
  return memory;
}
void OpenDevice::release(void* memory, uint64_t bytes) { type_->release(instance_, memory, bytes); }

OpenDevice::Object::Object(OpenDevice& device, Kind kind) : device_(device), kind_(kind) {
  const auto create = kind == kStream ? device.type_->stream_create : device.type_->event_create;
  device.require(create(device.instance_, device.lent_.errors(), &handle_),
                 kind == kStream ? "stream_create" : "event_create");
}
OpenDevice::Object::~Object() {
  (kind_ == kStream ? device_.type_->stream_destroy : device_.type_->event_destroy)(device_.instance_, handle_);
}

}  // namespace tenon::check

// The device "far": the primitives of the cpu on a device as unlike the cpu as can be. The host cannot touch its
// memory, and its streams run late. For tests of what the host does on such devices.
// SPDX-License-Identifier: Apache-2.0
#include <dlpack/dlpack.h>

#include <cstring>
#include <stdexcept>
#include <tenon/base.hpp>

#include "call.h"
#include "tables.h"

namespace tenon::far {

namespace {

using Handle = std::shared_ptr<Event>;

Device& of(void* device) { return *static_cast<Device*>(device); }

constexpr int32_t kDevices = 2;

int32_t count(void*, const tn_errors*) { return kDevices; }

tn_status open(const tn_device_open* open, void** device) {
  return tn::guarded(open->errors, [&] {
    if (open->index < 0 || open->index >= kDevices)
      throw std::invalid_argument("there is no far device of this number");
    *device = new Device;
  });
}

void close(void* device) { delete &of(device); }

tn_status properties(void*, const tn_errors*, tn_device_properties* properties) {
  properties->host_memory = 0;
  std::strncpy(properties->name, "memory out of reach", sizeof properties->name - 1);
  return TN_OK;
}

void* allocate(void* device, const tn_errors* errors, uint64_t bytes) {
  void* const made = of(device).memory.allocate(bytes);
  if (made == nullptr) tn_fail(errors, TN_OUT_OF_MEMORY, nullptr, "no room in the memory out of reach");
  return made;
}

void release(void* device, void* memory, uint64_t) { of(device).memory.release(memory); }

// Returns the memory behind an address of a copy; the host's own if `on_device` is false.
template <typename T>
T* end_of(const Memory& memory, T* at, bool on_device, const char* name) {
  if (memory.contains(at) != on_device)
    throw std::invalid_argument(std::string("copy: ") + name + " is " + (on_device ? "not " : "") +
                                "in the device's memory");
  return on_device ? memory.real(at) : at;
}

tn_status copy(void* device, const tn_errors* errors, const tn_copy* copy) {
  return tn::guarded(errors, [&] {
    if (copy->bytes == 0) return;
    const Memory& memory = of(device).memory;
    void* const to = end_of(memory, copy->to, copy->kind != TN_COPY_TO_HOST, "to");
    const void* const from = end_of(memory, copy->from, copy->kind != TN_COPY_TO_DEVICE, "from");
    Stream& stream = of(device).stream_at(copy->stream);
    if (copy->kind != TN_COPY_ON_DEVICE && stream.records())
      throw std::logic_error("copy: with memory of the host while the stream records");
    stream.enqueue([to, from, bytes = copy->bytes] {
      std::memmove(to, from, bytes);
      return Failure();
    });
  });
}

tn_status fill(void* device, const tn_errors* errors, void* stream, void* memory, uint8_t value, uint64_t bytes) {
  return tn::guarded(errors, [&] {
    if (bytes == 0) return;
    void* const to = end_of(of(device).memory, memory, true, "to");
    of(device).stream_at(stream).enqueue([to, value, bytes] {
      std::memset(to, value, bytes);
      return Failure();
    });
  });
}

tn_status stream_create(void*, const tn_errors* errors, void** stream) {
  return tn::guarded(errors, [&] { *stream = new Stream; });
}
void stream_destroy(void*, void* stream) { delete static_cast<Stream*>(stream); }

tn_status stream_wait(void* device, const tn_errors* errors, void* stream) {
  return tn::guarded(errors, [&] {
    const Failure failure = of(device).stream_at(stream).wait();
    if (failure.status != TN_OK) throw tn::Failure(failure.status, failure.port, failure.message);
  });
}

tn_status event_create(void*, const tn_errors* errors, void** event) {
  return tn::guarded(errors, [&] { *event = new Handle(std::make_shared<Event>()); });
}
void event_destroy(void*, void* event) { delete static_cast<Handle*>(event); }
tn_status event_record(void* device, const tn_errors* errors, void* event, void* stream) {
  return tn::guarded(errors, [&] { of(device).stream_at(stream).record(*static_cast<Handle*>(event)); });
}
tn_status event_wait(void* device, const tn_errors* errors, void* event, void* stream) {
  return tn::guarded(errors, [&] { of(device).stream_at(stream).wait_for(*static_cast<Handle*>(event)); });
}

const void* extension(void*, const char* id) { return table(id); }

}  // namespace

}  // namespace tenon::far

extern "C" TN_EXPORT const tn_plugin* tenon_plugin(void) {
  using namespace tenon::far;
  static const tn_device_description description = {sizeof description, kDLExtDev, "far",
                                                    "The primitives of the cpu in memory that the host cannot address",
                                                    table_ids()};
  static const tn_device_type type = {sizeof type,     0,
                                      &description,    &count,
                                      &open,           &close,
                                      &properties,     &allocate,
                                      &release,        &copy,
                                      &fill,           &stream_create,
                                      &stream_destroy, &stream_wait,
                                      &event_create,   &event_destroy,
                                      &event_record,   &event_wait,
                                      &extension,      nullptr};
  static const tn_device_type* const devices[] = {&type};
  static const tn_plugin plugin = [] {
    tn_plugin made = {};
    made.size = sizeof made;
    made.abi = {TN_ABI_MAJOR, TN_ABI_MINOR, TN_ABI_MINOR, 0};
    made.id = "tenon.test.far";
    made.version = "0.1.0";
    made.doc = "the device far: memory that the host cannot address, for tests";
    made.license = "Apache-2.0";
    made.isa = "";
    made.devices_count = 1;
    made.devices = devices;
    return made;
  }();
  return &plugin;
}

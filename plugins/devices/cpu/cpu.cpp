// The device "cpu", the reference with every primitive. Calls are synchronous, so streams and events have no state.
// Memory is allocated by the host, which counts it.
// SPDX-License-Identifier: Apache-2.0
#include <dlpack/dlpack.h>
#include <tenon/plugin.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <new>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "device.h"
#include "primitives.h"

namespace {

using tenon::cpu::as_device;
using tenon::cpu::Device;
using tenon::cpu::kPrimitives;
using tenon::cpu::Primitive;

// An allocation of 0 bytes gets 1 byte, so that an empty tensor has an address.
uint64_t at_least_one(uint64_t bytes) { return std::max<uint64_t>(bytes, 1); }

int32_t count(void*, const tn_errors*) { return 1; }

tn_status open(const tn_device_open* open, void** device) {
  const tn_services* const services = open->services;
  const tn_errors* const errors = open->errors;
  if (open->index != 0) return tn_fail(errors, TN_NOT_FOUND, "index", "there is only one cpu device, number 0");
  const auto* memory = static_cast<const tn_memory*>(services->extension(services->self, TN_MEMORY));
  if (memory == nullptr)
    return tn_fail(errors, TN_UNSUPPORTED, nullptr, "the host does not offer the service tenon.memory/1");
  auto* made = new (std::nothrow) Device{memory, {}};
  if (made == nullptr) return tn_fail(errors, TN_OUT_OF_MEMORY, nullptr, "no memory for the device itself");
  *device = made;
  return TN_OK;
}

void close(void* device) { delete as_device(device); }

// Writes the processor's brand name, cut to `size` bytes, or "CPU" if it is unknown.
void write_name(char* name, size_t size) {
  std::snprintf(name, size, "CPU");
#if defined(__x86_64__)
  unsigned int words[12] = {};
  for (unsigned int i = 0; i < 3; ++i) {
    unsigned int* const w = words + size_t{4} * i;
    if (__get_cpuid(0x80000002U + i, &w[0], &w[1], &w[2], &w[3]) == 0) return;
  }
  char text[sizeof words + 1] = {};
  std::memcpy(text, words, sizeof words);
  const char* start = text + std::strspn(text, " ");
  if (*start != '\0') std::snprintf(name, size, "%s", start);
#endif
}

tn_status properties(void*, const tn_errors*, tn_device_properties* properties) {
  if (TN_HAS(properties, tn_device_properties, host_memory)) properties->host_memory = 1;
  if (TN_HAS(properties, tn_device_properties, name)) write_name(properties->name, sizeof properties->name);
  if (TN_HAS(properties, tn_device_properties, memory_bytes)) {
    const long pages = sysconf(_SC_PHYS_PAGES);
    const long bytes = sysconf(_SC_PAGESIZE);
    properties->memory_bytes = pages > 0 && bytes > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(bytes) : 0;
  }
  return TN_OK;
}

void* allocate(void* device, const tn_errors* errors, uint64_t bytes) {
  const tn_memory& memory = *as_device(device)->memory;
  void* made = memory.allocate(memory.self, at_least_one(bytes));
  if (made == nullptr) {
    char message[80];
    std::snprintf(message, sizeof message, "the host cannot allocate %llu bytes",
                  static_cast<unsigned long long>(bytes));
    tn_fail(errors, TN_OUT_OF_MEMORY, nullptr, message);
  }
  return made;
}

void release(void* device, void* memory, uint64_t bytes) {
  const tn_memory& from = *as_device(device)->memory;
  if (memory != nullptr) from.release(from.self, memory, at_least_one(bytes));
}

tn_status copy(void*, const tn_errors*, const tn_copy* copy) {
  if (copy->bytes > 0) std::memmove(copy->to, copy->from, copy->bytes);
  return TN_OK;
}

tn_status fill(void*, const tn_errors*, void*, void* memory, uint8_t value, uint64_t bytes) {
  if (bytes > 0) std::memset(memory, value, bytes);
  return TN_OK;
}

// Streams and events have no state: every handle is the device pointer.
tn_status make_handle(void* device, const tn_errors*, void** handle) {
  *handle = device;
  return TN_OK;
}
void drop_handle(void*, void*) {}
tn_status stream_wait(void*, const tn_errors*, void*) { return TN_OK; }
tn_status event_order(void*, const tn_errors*, void*, void*) { return TN_OK; }

const void* extension(void*, const char* id) {
  for (const Primitive& primitive : kPrimitives)
    if (std::strcmp(id, primitive.id) == 0) return primitive.table;
  return nullptr;
}

// The ids of all tables, and null at the end.
constexpr auto table_ids() {
  std::array<const char*, std::size(kPrimitives) + 1> ids = {};
  for (size_t i = 0; i + 1 < ids.size(); ++i) ids[i] = kPrimitives[i].id;
  return ids;
}
constexpr auto kTableIds = table_ids();

constexpr tn_device_description kDescription = {sizeof(tn_device_description), kDLCPU, "cpu",
                                                "The processor, with every primitive; the reference for other devices",
                                                kTableIds.data()};

constexpr tn_device_type kDevice = {sizeof(tn_device_type),
                                    0,
                                    &kDescription,
                                    &count,
                                    &open,
                                    &close,
                                    &properties,
                                    &allocate,
                                    &release,
                                    &copy,
                                    &fill,
                                    &make_handle,
                                    &drop_handle,
                                    &stream_wait,
                                    &make_handle,
                                    &drop_handle,
                                    &event_order,
                                    &event_order,
                                    &extension,
                                    nullptr};

constexpr const tn_device_type* kDevices[] = {&kDevice};

constexpr tn_plugin kPlugin = [] {
  tn_plugin plugin = {};
  plugin.size = sizeof plugin;
  plugin.abi = {TN_ABI_MAJOR, TN_ABI_MINOR, TN_ABI_MINOR, 0};
  plugin.id = "tenon.cpu";
  plugin.version = "0.1.0";
  plugin.doc = "The device cpu: products, convolutions, vectorised pointwise programs, gather and scatter";
  plugin.license = "Apache-2.0";
  plugin.isa = "";
  plugin.devices_count = 1;
  plugin.devices = kDevices;
  return plugin;
}();

}  // namespace

extern "C" const tn_plugin* tenon_plugin(void) { return &kPlugin; }

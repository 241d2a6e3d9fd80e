/* The core of the museum's devices. SPDX-License-Identifier: Apache-2.0 */
#ifndef MUSEUM_CORE_H
#define MUSEUM_CORE_H

#include <stdio.h>

#include "elements.h"

/* ---- memory, streams, events: nothing runs later, so streams and events are memory without a use */

static const int64_t shifts[] = {0, (int64_t)1 << 46};

static inline int32_t count(void* user, const tn_errors* errors) {
  (void)user, (void)errors;
  return 1;
}
static inline tn_status open_device(const tn_device_open* open, void** to) {
  const tn_memory* memory = (const tn_memory*)open->services->extension(open->services->self, TN_MEMORY);
  const tn_log* log = (const tn_log*)open->services->extension(open->services->self, TN_LOG);
  device* on;
  if (open->index != 0) return tn_fail(open->errors, TN_NOT_FOUND, "index", "there is one device, number 0");
  if (memory == NULL) return tn_fail(open->errors, TN_UNSUPPORTED, NULL, "needs the service " TN_MEMORY);
  on = (device*)memory->allocate(memory->self, sizeof *on);
  if (on == NULL) return tn_fail(open->errors, TN_OUT_OF_MEMORY, NULL, "no memory for a device");
  on->memory = memory;
  on->shift = *(const int64_t*)open->user;
  on->recording = NULL;
  on->traits = on->reserved = 0;
  if (log != NULL) log->write(log->self, 0, "a device of the museum is open");
  *to = on;
  return TN_OK;
}
static inline void close_device(void* self) {
  device* on = (device*)self;
  on->memory->release(on->memory->self, on, sizeof *on);
}
static inline tn_status properties(void* self, const tn_errors* errors, tn_device_properties* to) {
  (void)errors;
  to->host_memory = ((device*)self)->shift == 0;
  snprintf(to->name, sizeof to->name, "loops of the museum");
  to->memory_bytes = 0;
  return TN_OK;
}
static inline void* allocate(void* self, const tn_errors* errors, uint64_t bytes) {
  const device* on = (const device*)self;
  void* memory = on->memory->allocate(on->memory->self, bytes + 1);
  if (memory == NULL) (void)tn_fail(errors, TN_OUT_OF_MEMORY, NULL, "the host has not so much memory");
  return far_of(on, memory);
}
static inline void release(void* self, void* memory, uint64_t bytes) {
  const device* on = (const device*)self;
  on->memory->release(on->memory->self, near_of(on, memory), bytes + 1);
}
static inline tn_status copy(void* self, const tn_errors* errors, const tn_copy* it) {
  const device* on = (const device*)self;
  void* to = it->kind == TN_COPY_TO_HOST ? it->to : near_of(on, it->to);
  const void* from = it->kind == TN_COPY_TO_DEVICE ? it->from : near_of(on, it->from);
  if (it->kind != TN_COPY_TO_HOST && it->kind != TN_COPY_TO_DEVICE && it->kind != TN_COPY_ON_DEVICE)
    return tn_fail(errors, TN_UNSUPPORTED, NULL, "copies of an unknown kind");
  if (it->bytes > 0) memmove(to, from, it->bytes);
  return TN_OK;
}
static inline tn_status fill(void* self, const tn_errors* errors, void* stream, void* memory, uint8_t value,
                             uint64_t bytes) {
  (void)errors, (void)stream;
  if (bytes > 0) memset(near_of((const device*)self, memory), value, bytes);
  return TN_OK;
}
static inline tn_status make_handle(void* self, const tn_errors* errors, void** handle) {
  device* on = (device*)self;
  *handle = on->memory->allocate(on->memory->self, 64);
  return *handle != NULL ? TN_OK : tn_fail(errors, TN_OUT_OF_MEMORY, NULL, "no memory for a stream or an event");
}
static inline void drop_handle(void* self, void* handle) {
  device* on = (device*)self;
  on->memory->release(on->memory->self, handle, 64);
}
static inline tn_status wait_for(void* self, const tn_errors* errors, void* stream) {
  (void)self, (void)errors, (void)stream;
  return TN_OK;
}
static inline tn_status order(void* self, const tn_errors* errors, void* event, void* stream) {
  (void)self, (void)errors, (void)event, (void)stream;
  return TN_OK;
}
static inline void* native_stream(void* self, void* stream) {
  (void)self;
  return stream;
}

#endif

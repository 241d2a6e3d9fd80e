/* The memory of the museum's devices, and elements of any type, as doubles. SPDX-License-Identifier: Apache-2.0 */
#ifndef MUSEUM_ELEMENTS_H
#define MUSEUM_ELEMENTS_H

#include <stdio.h>
#include <tenon/plugin.h>

/* An open device. Its addresses are those of the host plus `shift`: of a device with memory of its own no address is
 * one of the process, so that a host that follows one crashes. */
typedef struct device {
  const tn_memory* memory;
  int64_t shift;
  struct recording* recording; /* null: calls run at once */
  uint32_t traits, reserved;   /* of all calls */
} device;

static inline void* near_of(const device* on, const void* address) {
  return address == NULL ? NULL : (void*)((uintptr_t)address - (uintptr_t)on->shift);
}
static inline void* far_of(const device* on, void* address) {
  return address == NULL ? NULL : (void*)((uintptr_t)address + (uintptr_t)on->shift);
}
static inline uint8_t* data_of(const device* on, const tn_tensor* tensor) {
  return (uint8_t*)near_of(on, tn_data(tensor));
}
static inline int64_t value_of(const device* on, const tn_dim* dim, const tn_execution* execution) {
  return tn_dim_value(dim, (const int64_t*)near_of(on, execution->symbols));
}

static inline double load(tn_dtype type, const void* from, int64_t i) {
  switch (type) {
    case TN_F32:
      return ((const float*)from)[i];
    case TN_F64:
      return ((const double*)from)[i];
    case TN_I8:
      return ((const int8_t*)from)[i];
    case TN_I16:
      return ((const int16_t*)from)[i];
    case TN_I32:
      return ((const int32_t*)from)[i];
    case TN_I64:
      return (double)((const int64_t*)from)[i];
    case TN_U16:
      return ((const uint16_t*)from)[i];
    case TN_U32:
      return ((const uint32_t*)from)[i];
    default:
      return ((const uint8_t*)from)[i]; /* TN_U8, TN_BOOL */
  }
}
static inline void store(tn_dtype type, void* to, int64_t i, double value) {
  switch (type) {
    case TN_F32:
      ((float*)to)[i] = (float)value;
      break;
    case TN_F64:
      ((double*)to)[i] = value;
      break;
    case TN_I8:
      ((int8_t*)to)[i] = (int8_t)value;
      break;
    case TN_I16:
      ((int16_t*)to)[i] = (int16_t)value;
      break;
    case TN_I32:
      ((int32_t*)to)[i] = (int32_t)value;
      break;
    case TN_I64:
      ((int64_t*)to)[i] = (int64_t)value;
      break;
    case TN_U16:
      ((uint16_t*)to)[i] = (uint16_t)value;
      break;
    case TN_U32:
      ((uint32_t*)to)[i] = (uint32_t)value;
      break;
    default:
      ((uint8_t*)to)[i] = (uint8_t)value;
      break;
  }
}
/* Stores a value as the request of the output asks; that of TN_REQUEST_NONE is null. */
static inline void put(tn_dtype type, void* to, int64_t i, double value, uint8_t request) {
  if (request != TN_REQUEST_NONE) store(type, to, i, request == TN_REQUEST_ADD ? load(type, to, i) + value : value);
}
static inline int is_element(tn_dtype type) {
  return type == TN_F32 || type == TN_F64 || type == TN_BOOL ||
         (tn_dtype_code(type) <= 1 && tn_dtype_bits(type) >= 8 && type != TN_DTYPE(1, 64));
}

/* A prepared call, followed by the lists that it keeps. */
typedef struct binding {
  device* on;
  uint64_t bytes;
  tn_status (*run)(void* self, const tn_execution* execution, const tn_call* call);
} binding;

/* Keeps a call for later; only a device that is recording has one. */
typedef struct recording {
  tn_status (*record)(struct recording* to, binding* bound, const tn_execution* execution, const tn_call* call);
  struct call_record *first, *last;
} recording;

static inline tn_status run_or_record(void* self, const tn_execution* execution, const tn_call* call) {
  binding* bound = (binding*)self;
  recording* to = bound->on->recording;
  return to != NULL ? to->record(to, bound, execution, call) : bound->run(self, execution, call);
}

static inline void destroy(void* self) {
  const binding it = *(binding*)self;
  it.on->memory->release(it.on->memory->self, self, it.bytes);
}
/* Makes a binding, and sets all of `prepared` but its workspace; null, with a report, without memory. */
static inline void* bind(void* on, const tn_errors* errors, uint64_t bytes, tn_prepared* prepared,
                         tn_status (*run)(void*, const tn_execution*, const tn_call*)) {
  const tn_memory* memory = ((device*)on)->memory;
  binding* bound = (binding*)memory->allocate(memory->self, bytes);
  if (bound == NULL) {
    (void)tn_fail(errors, TN_OUT_OF_MEMORY, NULL, "no memory for a call");
    return NULL;
  }
  bound->on = (device*)on;
  bound->bytes = bytes;
  bound->run = run;
  prepared->traits = bound->on->traits;
  prepared->binding = bound;
  prepared->run = run_or_record;
  prepared->destroy = destroy;
  return bound;
}
/* Copies a list behind the binding; returns where the copy is. */
static inline void* keep(uint8_t** at, const void* from, uint64_t bytes) {
  void* to = *at;
  if (bytes > 0) memcpy(to, from, bytes);
  *at += (bytes + 7) / 8 * 8;
  return to;
}

static inline tn_status bad_id(const tn_execution* execution, int64_t id, int64_t height) {
  char message[96];
  snprintf(message, sizeof message, "the id %lld is not in [0, %lld)", (long long)id, (long long)height);
  return tn_fail(execution->errors, TN_BAD_DATA, NULL, message);
}
static inline tn_status unknown_type(const tn_errors* errors) {
  return tn_fail(errors, TN_UNSUPPORTED, NULL, "elements of an unknown type");
}

#endif

/* The base of devices that break one rule: "bad.cpu", which lends everything from the device "cpu" but what a source
 * replaces. A source defines NAME and its fault:
 *
 *   ID, TABLE, SITE, PREPARE   of a table: its id, its type, the type of a site, and the member that is replaced; AFTER
 *                              then runs after each call of it, and knows `execution` and `call`; ONLY: of sites of
 *                              which it is true
 *   COPIES, STREAMS            functions in place of those below, in the order of tn_device_type
 *   COPY, FILL, SHIFT          what a copy of more than 0 bytes does, what a fill does, and see below
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/plugin.h>

TN_RESERVE_NOTE(4096);

#ifndef REQUIRED /* the oldest host */
#define REQUIRED TN_ABI_MINOR
#endif
/* Returns the device "cpu". The plugin's file is loaded at the first call: the tables of a device are asked for before
 * it is opened. */
static const tn_device_type* cpu(void) {
  void* const file = dlopen(CPU_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  const tn_plugin* (*entry)(void) = NULL;
  void* const symbol = dlsym(file, TN_ENTRY_NAME);
  memcpy(&entry, &symbol, sizeof entry);
  return entry()->devices[0];
}

#ifdef TABLE
/* Changes the first element of a result. */
static inline void spoil(const tn_tensor* tensor) {
  if (tensor == NULL || tn_elements(tensor) == 0) return;
  if (tensor->dl.dtype.code != kDLFloat)
    *(int64_t*)tn_data(tensor) += 1;
  else if (tensor->dl.dtype.bits == 64)
    *(double*)tn_data(tensor) += 0.01;
  else
    *(float*)tn_data(tensor) += 0.01F;
}

#ifndef AFTER
#define AFTER spoil(call->outputs[0]);
#endif

static tn_status run(void* binding, const tn_execution* execution, const tn_call* call) {
  const tn_prepared* const given = binding;
  const tn_status status = given->run(given->binding, execution, call);
  if (status == TN_OK) {
    AFTER
  }
  return status;
}

static void destroy(void* binding) {
  tn_prepared* const given = binding;
  if (given->destroy != NULL) given->destroy(given->binding);
  free(given);
}

static tn_status prepare(void* device, const tn_services* services, const tn_errors* errors, const SITE* site,
                         tn_prepared* prepared) {
  tn_prepared* const given = calloc(1, sizeof *given);
  const TABLE* const table = cpu()->extension(NULL, ID);
  if (given == NULL) return tn_fail(errors, TN_OUT_OF_MEMORY, NULL, "no memory for a binding");
#ifdef ONLY
  if (!(ONLY)) {
    free(given);
    return table->PREPARE(device, services, errors, site, prepared);
  }
#endif
  given->size = sizeof *given;
  const tn_status status = table->PREPARE(device, services, errors, site, given);
  if (status != TN_OK) {
    free(given);
    return status;
  }
  *prepared = *given;
  prepared->binding = given;
  prepared->run = run;
  prepared->destroy = destroy;
  return TN_OK;
}
#endif

static const void* extension(void* user, const char* id) {
  (void)user;
#ifdef TABLE
  static TABLE replaced;
  if (strcmp(id, ID) == 0) {
    replaced = *(const TABLE*)cpu()->extension(NULL, id);
    replaced.PREPARE = prepare;
    return &replaced;
  }
#endif
  return cpu()->extension(NULL, id);
}

static int32_t count(void* user, const tn_errors* errors) {
  (void)user;
  return cpu()->count(NULL, errors);
}
static tn_status open_device(const tn_device_open* open, void** device) { return cpu()->open(open, device); }
static void close_device(void* device) { cpu()->close(device); }
#ifndef PROPERTIES /* a statement about the properties */
#define PROPERTIES(result)
#endif
static tn_status properties(void* device, const tn_errors* errors, tn_device_properties* result) {
  const tn_status status = cpu()->properties(device, errors, result);
  PROPERTIES(result)
  return status;
}
#ifndef SHIFT /* bytes by which allocations are off the alignment */
#define SHIFT 0
#endif
static void* allocate(void* device, const tn_errors* errors, uint64_t bytes) {
  uint8_t* const memory = cpu()->allocate(device, errors, bytes + SHIFT);
  return memory == NULL ? NULL : memory + SHIFT;
}
static void release(void* device, void* memory, uint64_t bytes) {
  cpu()->release(device, (uint8_t*)memory - SHIFT, bytes + SHIFT);
}

#ifndef COPIES /* functions of copies and fills of its own */
#ifndef COPY
#define COPY(what) memmove((what)->to, (what)->from, (what)->bytes)
#endif
static tn_status copy(void* device, const tn_errors* errors, const tn_copy* what) {
  (void)device, (void)errors;
  if (what->bytes > 0) COPY(what);
  return TN_OK;
}
#ifndef FILL
#define FILL(memory, value, bytes) memset(memory, value, bytes)
#endif
static tn_status fill(void* device, const tn_errors* errors, void* stream, void* memory, uint8_t value,
                      uint64_t bytes) {
  (void)device, (void)errors, (void)stream;
  if (bytes > 0) FILL(memory, value, bytes);
  return TN_OK;
}
#define COPIES copy, fill
#endif
#ifndef STREAMS /* functions of streams and events of its own */
static tn_status make_handle(void* device, const tn_errors* errors, void** handle) {
  (void)errors;
  *handle = device;
  return TN_OK;
}
static void drop_handle(void* device, void* handle) { (void)device, (void)handle; }
static tn_status stream_wait(void* device, const tn_errors* errors, void* stream) {
  (void)device, (void)errors, (void)stream;
  return TN_OK;
}
static tn_status event_order(void* device, const tn_errors* errors, void* event, void* stream) {
  (void)device, (void)errors, (void)event, (void)stream;
  return TN_OK;
}
#define STREAMS make_handle, drop_handle, stream_wait, make_handle, drop_handle, event_order, event_order
#endif

static const char* const tables[] = {TN_POINTWISE,
                                     TN_GEMM,
                                     TN_GEMM_EPILOGUE,
                                     TN_PACKED_GEMM,
                                     TN_GATHER,
                                     TN_GATHER_GEMM,
                                     TN_MOVE,
                                     TN_ARGSORT,
                                     TN_PREFIX_SUM,
                                     TN_SEGMENT,
                                     TN_ROW_SPARSE_TABLE,
                                     TN_COALESCE_PRODUCTS,
                                     TN_CONV,
                                     TN_CONV_EPILOGUE,
                                     TN_POOL,
                                     TN_RESIZE,
                                     NULL};
static const tn_device_description description = {sizeof(tn_device_description), kDLCPU, "bad.cpu",
                                                  "The processor, with a fault", tables};
static const tn_device_type type = {sizeof(tn_device_type),
                                    0,
                                    &description,
                                    count,
                                    open_device,
                                    close_device,
                                    properties,
                                    allocate,
                                    release,
                                    COPIES,
                                    STREAMS,
                                    extension,
                                    NULL};
static const tn_device_type* const devices[] = {&type};
static const tn_plugin plugin = {.size = sizeof(tn_plugin),
                                 .abi = {TN_ABI_MAJOR, TN_ABI_MINOR, REQUIRED, 0},
                                 .id = "bad." NAME,
                                 .version = "1.0.0",
                                 .doc = "A device that may break a rule",
                                 .license = "Apache-2.0",
                                 .isa = "",
                                 .devices_count = 1,
                                 .devices = devices};

const tn_plugin* tenon_plugin(void) { return &plugin; }

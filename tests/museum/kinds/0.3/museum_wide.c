/* An exhibit in C: a device with every table of 0.3, with memory of its own, memory of the host for copies, and
 * recorded work. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <tenon/device_host.h>

#define OPEN open_wide
#include "../tables.h"
#include "images.h"
#include "more_rows.h"

/* ---- tenon.capture/1: calls are kept with copies of their operands */

typedef struct kept_tensor {
  tn_tensor tensor;
  tn_row_sparse rows;
} kept_tensor;
typedef struct call_record {
  struct call_record* next;
  binding* bound;
  tn_execution execution;
  tn_call call;
  kept_tensor* tensors;
  tn_tensor** operands; /* inputs, then outputs */
  uint8_t* requests;
} call_record;

static void free_records(recording* graph) {
  for (call_record* each = graph == NULL ? NULL : graph->first; each != NULL;) {
    call_record* next = each->next;
    free(each->tensors);
    free(each->operands);
    free(each->requests);
    free(each);
    each = next;
  }
  free(graph);
}
static void run_all(void* self, int64_t count, void (*task)(void* argument, int64_t index, int32_t worker),
                    void* argument) {
  (void)self;
  for (int64_t i = 0; i < count; ++i) task(argument, i, 0);
}
static void run_phases(void* self, int32_t count, const int64_t* sizes,
                       void (*task)(void* argument, int32_t phase, int64_t index, int32_t worker), void* argument) {
  (void)self;
  for (int32_t phase = 0; phase < count; ++phase)
    for (int64_t i = 0; i < sizes[phase]; ++i) task(argument, phase, i, 0);
}
static const tn_parallel serial = {
    .size = sizeof(tn_parallel), .workers = 1, .for_each = run_all, .phases = run_phases};

static void keep_tensor(call_record* to, uint32_t number, const tn_tensor* from) {
  kept_tensor* kept = &to->tensors[number];
  if (from == NULL) return;
  kept->tensor = *from;
  if (from->storage == TN_ROW_SPARSE) {
    kept->rows = *(const tn_row_sparse*)from->part;
    kept->tensor.part = &kept->rows;
  }
  to->operands[number] = &kept->tensor;
}
static tn_status record_call(recording* to, binding* bound, const tn_execution* execution, const tn_call* call) {
  const uint32_t operands = call->inputs_count + call->outputs_count;
  call_record* each = (call_record*)calloc(1, sizeof *each);
  if (each == NULL) return TN_OUT_OF_MEMORY;
  each->tensors = (kept_tensor*)calloc(operands + 1, sizeof *each->tensors);
  each->operands = (tn_tensor**)calloc(operands + 1, sizeof *each->operands);
  each->requests = (uint8_t*)calloc(operands + 1, 1);
  *(to->first == NULL ? &to->first : &to->last->next) = each;
  to->last = each;
  if (each->tensors == NULL || each->operands == NULL || each->requests == NULL) return TN_OUT_OF_MEMORY;
  each->bound = bound;
  memcpy(&each->execution, execution, execution->size < sizeof(tn_execution) ? execution->size : sizeof(tn_execution));
  each->execution.parallel = &serial;
  each->call = *call;
  for (uint32_t i = 0; i < call->inputs_count; ++i) keep_tensor(each, i, call->inputs[i]);
  for (uint32_t i = 0; i < call->outputs_count; ++i) keep_tensor(each, call->inputs_count + i, call->outputs[i]);
  memcpy(each->requests, call->requests, call->outputs_count);
  each->call.inputs = (const tn_tensor* const*)each->operands;
  each->call.outputs = each->operands + call->inputs_count;
  each->call.requests = each->requests;
  return TN_OK;
}
static tn_status begin_capture(void* self, const tn_errors* errors, void* stream) {
  recording* graph = (recording*)calloc(1, sizeof *graph);
  (void)stream;
  if (graph == NULL) return tn_fail(errors, TN_OUT_OF_MEMORY, NULL, "no memory for a recording");
  graph->record = record_call;
  ((device*)self)->recording = graph;
  return TN_OK;
}
static tn_status end_capture(void* self, const tn_errors* errors, void* stream, void** graph) {
  device* on = (device*)self;
  (void)errors, (void)stream;
  if (graph != NULL)
    *graph = on->recording;
  else
    free_records(on->recording);
  on->recording = NULL;
  return TN_OK;
}
static tn_status launch(void* self, const tn_errors* errors, void* graph, void* stream) {
  tn_status status = TN_OK;
  (void)self, (void)stream;
  for (call_record* each = ((recording*)graph)->first; each != NULL && status == TN_OK; each = each->next) {
    each->execution.errors = errors;
    status = each->bound->run(each->bound, &each->execution, &each->call);
  }
  return status;
}
static void destroy_graph(void* self, void* graph) {
  (void)self;
  free_records((recording*)graph);
}
static tn_status open_wide(const tn_device_open* open, void** to) {
  const tn_status status = open_device(open, to);
  if (status == TN_OK) ((device*)*to)->traits = TN_TRAIT_CAPTURABLE;
  return status;
}

/* ---- tenon.host_memory/1 */

static void* allocate_host(void* self, const tn_errors* errors, uint64_t bytes) {
  const device* on = (const device*)self;
  return near_of(on, allocate(self, errors, bytes));
}
static void release_host(void* self, void* memory, uint64_t bytes) {
  release(self, far_of((const device*)self, memory), bytes);
}

/* ---- the tables */

static const tn_packed_gemm_table packed_table = {.size = sizeof(tn_packed_gemm_table),
                                                  .packed_bytes = packed_bytes,
                                                  .prepare_pack = prepare_pack,
                                                  .prepare_multiply = prepare_gemm,
                                                  .prepare_epilogue = prepare_epilogue};
static const tn_gather_gemm_table gather_gemm_table = {
    .size = sizeof(tn_gather_gemm_table), .supports = supports_gather_gemm, .prepare = prepare_gather_gemm};
static const tn_argsort_table argsort_table = {.size = sizeof(tn_argsort_table), .prepare = prepare_argsort};
static const tn_prefix_sum_table prefix_sum_table = {.size = sizeof(tn_prefix_sum_table),
                                                     .prepare = prepare_prefix_sum};
static const tn_coalesce_products_table products_table = {
    .size = sizeof(tn_coalesce_products_table), .supports = supports_products, .prepare = prepare_products};
static const tn_conv_table conv_table = {.size = sizeof(tn_conv_table), .prepare = prepare_conv};
static const tn_conv_epilogue_table conv_epilogue_table = {.size = sizeof(tn_conv_epilogue_table),
                                                           .opset = TN_OPSET,
                                                           .supports = supports_conv_epilogue,
                                                           .prepare = prepare_conv_epilogue};
static const tn_pool_table pool_table = {.size = sizeof(tn_pool_table), .prepare = prepare_pool};
static const tn_resize_table resize_table = {.size = sizeof(tn_resize_table), .prepare = prepare_resize};
static const tn_host_memory_table host_memory_table = {
    .size = sizeof(tn_host_memory_table), .allocate = allocate_host, .release = release_host};
static const tn_capture_table capture_table = {.size = sizeof(tn_capture_table),
                                               .begin = begin_capture,
                                               .end = end_capture,
                                               .launch = launch,
                                               .destroy = destroy_graph};
static const char* const tables[] = {TN_GEMM,
                                     TN_POINTWISE,
                                     TN_GEMM_EPILOGUE,
                                     TN_GATHER,
                                     TN_MOVE,
                                     TN_SEGMENT,
                                     TN_ROW_SPARSE_TABLE,
                                     TN_NATIVE,
                                     TN_PACKED_GEMM,
                                     TN_GATHER_GEMM,
                                     TN_ARGSORT,
                                     TN_PREFIX_SUM,
                                     TN_COALESCE_PRODUCTS,
                                     TN_CONV,
                                     TN_CONV_EPILOGUE,
                                     TN_POOL,
                                     TN_RESIZE,
                                     TN_HOST_MEMORY,
                                     TN_CAPTURE,
                                     NULL};

static const void* extension(void* user, const char* id) {
  const void* const values[] = {&gemm_table,     &pointwise_table,   &epilogue_table,      &gather_table,
                                &move_table,     &segment_table,     &row_sparse_table,    &native_table,
                                &packed_table,   &gather_gemm_table, &argsort_table,       &prefix_sum_table,
                                &products_table, &conv_table,        &conv_epilogue_table, &pool_table,
                                &resize_table,   &host_memory_table, &capture_table};
  (void)user;
  for (int i = 0; tables[i] != NULL; ++i)
    if (strcmp(id, tables[i]) == 0) return values[i];
  return NULL;
}
DEVICE(wide, "Every table of 0.3, over memory that the host cannot address", 1);

static const tn_device_type* const devices[] = {&wide_type};
static const tn_plugin plugin = {.size = sizeof(tn_plugin),
                                 .abi = {TN_ABI_MAJOR, TN_ABI_MINOR, 3, 0},
                                 .id = "museum.wide",
                                 .version = "1.0.0",
                                 .doc = "An exhibit: a device with every table of 0.3",
                                 .license = "Apache-2.0",
                                 .isa = "",
                                 .devices_count = 1,
                                 .devices = devices};

const tn_plugin* tenon_plugin(void) { return &plugin; }

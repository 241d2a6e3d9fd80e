/* An exhibit in C: a device in plain loops, with the memory of the host ("museum.near") and with memory of its own
 * ("museum.far"). rows.h has the tables of rows. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "rows.h"

/* ---- memory, streams, events: nothing runs later, so streams and events are memory without a use */

static const int64_t shifts[] = {0, (int64_t)1 << 46};

static int32_t count(void* user, const tn_errors* errors) {
  (void)user, (void)errors;
  return 1;
}
static tn_status open_device(const tn_device_open* open, void** to) {
  const tn_memory* memory = (const tn_memory*)open->services->extension(open->services->self, TN_MEMORY);
  const tn_log* log = (const tn_log*)open->services->extension(open->services->self, TN_LOG);
  device* on;
  if (open->index != 0) return tn_fail(open->errors, TN_NOT_FOUND, "index", "there is one device, number 0");
  if (memory == NULL) return tn_fail(open->errors, TN_UNSUPPORTED, NULL, "needs the service " TN_MEMORY);
  on = (device*)memory->allocate(memory->self, sizeof *on);
  if (on == NULL) return tn_fail(open->errors, TN_OUT_OF_MEMORY, NULL, "no memory for a device");
  on->memory = memory;
  on->shift = *(const int64_t*)open->user;
  if (log != NULL) log->write(log->self, 0, "a device of the museum is open");
  *to = on;
  return TN_OK;
}
static void close_device(void* self) {
  device* on = (device*)self;
  on->memory->release(on->memory->self, on, sizeof *on);
}
static tn_status properties(void* self, const tn_errors* errors, tn_device_properties* to) {
  (void)errors;
  to->host_memory = ((device*)self)->shift == 0;
  snprintf(to->name, sizeof to->name, "loops of the museum");
  to->memory_bytes = 0;
  return TN_OK;
}
static void* allocate(void* self, const tn_errors* errors, uint64_t bytes) {
  const device* on = (const device*)self;
  void* memory = on->memory->allocate(on->memory->self, bytes + 1);
  if (memory == NULL) (void)tn_fail(errors, TN_OUT_OF_MEMORY, NULL, "the host has not so much memory");
  return far_of(on, memory);
}
static void release(void* self, void* memory, uint64_t bytes) {
  const device* on = (const device*)self;
  on->memory->release(on->memory->self, near_of(on, memory), bytes + 1);
}
static tn_status copy(void* self, const tn_errors* errors, const tn_copy* it) {
  const device* on = (const device*)self;
  void* to = it->kind == TN_COPY_TO_HOST ? it->to : near_of(on, it->to);
  const void* from = it->kind == TN_COPY_TO_DEVICE ? it->from : near_of(on, it->from);
  if (it->kind != TN_COPY_TO_HOST && it->kind != TN_COPY_TO_DEVICE && it->kind != TN_COPY_ON_DEVICE)
    return tn_fail(errors, TN_UNSUPPORTED, NULL, "copies of an unknown kind");
  if (it->bytes > 0) memmove(to, from, it->bytes);
  return TN_OK;
}
static tn_status fill(void* self, const tn_errors* errors, void* stream, void* memory, uint8_t value, uint64_t bytes) {
  (void)errors, (void)stream;
  if (bytes > 0) memset(near_of((const device*)self, memory), value, bytes);
  return TN_OK;
}
static tn_status make_handle(void* self, const tn_errors* errors, void** handle) {
  device* on = (device*)self;
  *handle = on->memory->allocate(on->memory->self, 64);
  return *handle != NULL ? TN_OK : tn_fail(errors, TN_OUT_OF_MEMORY, NULL, "no memory for a stream or an event");
}
static void drop_handle(void* self, void* handle) {
  device* on = (device*)self;
  on->memory->release(on->memory->self, handle, 64);
}
static tn_status wait_for(void* self, const tn_errors* errors, void* stream) {
  (void)self, (void)errors, (void)stream;
  return TN_OK;
}
static tn_status order(void* self, const tn_errors* errors, void* event, void* stream) {
  (void)self, (void)errors, (void)event, (void)stream;
  return TN_OK;
}
static void* native_stream(void* self, void* stream) {
  (void)self;
  return stream;
}

/* ---- tenon.gemm/1 and tenon.gemm_epilogue/1 */

typedef struct product {
  binding base;
  tn_gemm gemm;
  int32_t operand; /* of the program behind it: that which is the product */
  int32_t reserved;
  program behind;
} product;

typedef struct product_run {
  const product* of;
  const tn_call* call;
  const grid* behind;
  const uint8_t *a, *b;
  uint8_t* c;
  int64_t m, n, k;
} product_run;

static void multiply_row(void* argument, int64_t row, int32_t worker) {
  const product_run* run = (const product_run*)argument;
  const tn_gemm* gemm = &run->of->gemm;
  const int64_t g = row / run->m, i = row % run->m, m = run->m, n = run->n, k = run->k;
  (void)worker;
  for (int64_t j = 0; j < n; ++j) {
    double sum = 0; /* in the order of k alone, so that a row does not depend on the others */
    for (int64_t l = 0; l < k; ++l)
      sum += load(gemm->dtype, run->a, g * m * k + (gemm->flags & TN_TRANSPOSE_A ? l * m + i : i * k + l)) *
             load(gemm->dtype, run->b, g * k * n + (gemm->flags & TN_TRANSPOSE_B ? j * k + l : l * n + j));
    put(gemm->dtype, run->c, row * n + j, gemm->alpha * sum,
        run->behind != NULL && run->call->requests[0] == TN_REQUEST_NONE ? TN_REQUEST_WRITE : run->call->requests[0]);
  }
}
static void run_phase(void* argument, int32_t phase, int64_t index, int32_t worker) {
  if (phase == 0)
    multiply_row(argument, index, worker);
  else
    run_program(((const product_run*)argument)->behind);
}
static product_run run_of(const product* of, const tn_execution* execution, const tn_call* call) {
  const device* on = of->base.on;
  const product_run result = {of,
                              call,
                              NULL,
                              data_of(on, call->inputs[0]),
                              data_of(on, call->inputs[1]),
                              data_of(on, call->outputs[0]),
                              value_of(on, &of->gemm.m, execution),
                              value_of(on, &of->gemm.n, execution),
                              value_of(on, &of->gemm.k, execution)};
  return result;
}
static tn_status run_gemm(void* self, const tn_execution* execution, const tn_call* call) {
  const product* of = (const product*)self;
  product_run run = run_of(of, execution, call);
  const int64_t batch = value_of(of->base.on, &of->gemm.batch, execution);
  if (call->requests[0] == TN_REQUEST_NONE) return TN_OK;
  execution->parallel->for_each(execution->parallel->self, batch * run.m, multiply_row, &run);
  return TN_OK;
}
static tn_status run_epilogue(void* self, const tn_execution* execution, const tn_call* call) {
  const product* of = (const product*)self;
  const device* on = of->base.on;
  const uint8_t* inputs[OPERANDS];
  uint8_t* outputs[OPERANDS];
  product_run run = run_of(of, execution, call);
  const int64_t sizes[2] = {value_of(on, &of->gemm.batch, execution) * run.m, 1};
  const grid behind = {&of->behind,
                       value_of(on, &of->behind.rows, execution),
                       value_of(on, &of->behind.columns, execution),
                       (double*)near_of(on, call->workspace),
                       inputs,
                       outputs,
                       call->requests + 1,
                       (const tn_random*)near_of(on, execution->random),
                       NULL};
  for (int32_t i = 0; i < (int32_t)of->behind.inputs_count; ++i)
    inputs[i] = i == of->operand ? run.c : data_of(on, call->inputs[2 + i - (i > of->operand)]);
  for (uint32_t o = 0; o < of->behind.outputs_count; ++o) outputs[o] = data_of(on, call->outputs[1 + o]);
  run.behind = &behind;
  execution->parallel->phases(execution->parallel->self, 2, sizes, run_phase, &run);
  return TN_OK;
}
static int is_product(const tn_gemm* gemm) { return gemm->dtype == TN_F32 || gemm->dtype == TN_F64; }
static tn_status prepare_gemm(void* on, const tn_services* services, const tn_errors* errors, const tn_gemm* gemm,
                              tn_prepared* prepared) {
  product* bound;
  (void)services;
  if (!is_product(gemm))
    return tn_fail(errors, TN_UNSUPPORTED, NULL, "products of other types than float32 and float64");
  bound = (product*)bind(on, errors, sizeof *bound, prepared, run_gemm);
  if (bound == NULL) return TN_OUT_OF_MEMORY;
  memcpy(&bound->gemm, gemm, gemm->size < sizeof(tn_gemm) ? gemm->size : sizeof(tn_gemm));
  return TN_OK;
}
static tn_status supports_epilogue(void* on, const tn_errors* errors, const tn_gemm_epilogue* epilogue) {
  (void)on, (void)errors;
  return is_product(epilogue->gemm) && epilogue->site->program->inputs_count <= OPERANDS &&
                 epilogue->site->program->outputs_count <= OPERANDS
             ? TN_OK
             : TN_UNSUPPORTED;
}
static tn_status prepare_epilogue(void* on, const tn_services* services, const tn_errors* errors,
                                  const tn_gemm_epilogue* epilogue, tn_prepared* prepared) {
  product* bound;
  const tn_status status = check_program(errors, epilogue->site);
  (void)services;
  if (status != TN_OK) return status;
  if (!is_product(epilogue->gemm)) return tn_fail(errors, TN_UNSUPPORTED, NULL, "products of an unknown type");
  bound = (product*)bind(on, errors, sizeof *bound + program_bytes(epilogue->site->program), prepared, run_epilogue);
  if (bound == NULL) return TN_OUT_OF_MEMORY;
  memcpy(&bound->gemm, epilogue->gemm, epilogue->gemm->size < sizeof(tn_gemm) ? epilogue->gemm->size : sizeof(tn_gemm));
  bound->operand = epilogue->product;
  bound->behind = kept_program((uint8_t*)(bound + 1), epilogue->site, NULL, NULL);
  prepared->workspace_bytes = values_bytes(epilogue->site);
  return TN_OK;
}

/* ---- tenon.pointwise/1 */

typedef struct pointwise {
  binding base;
  program of;
} pointwise;

static tn_status run_pointwise(void* self, const tn_execution* execution, const tn_call* call) {
  const pointwise* it = (const pointwise*)self;
  const device* on = it->base.on;
  const uint8_t* inputs[OPERANDS];
  uint8_t* outputs[OPERANDS];
  const grid g = {&it->of,
                  value_of(on, &it->of.rows, execution),
                  value_of(on, &it->of.columns, execution),
                  (double*)near_of(on, call->workspace),
                  inputs,
                  outputs,
                  call->requests,
                  (const tn_random*)near_of(on, execution->random),
                  NULL};
  for (uint32_t i = 0; i < call->inputs_count; ++i) inputs[i] = data_of(on, call->inputs[i]);
  for (uint32_t i = 0; i < call->outputs_count; ++i) outputs[i] = data_of(on, call->outputs[i]);
  run_program(&g);
  return TN_OK;
}
static tn_status prepare_pointwise(void* on, const tn_services* services, const tn_errors* errors,
                                   const tn_pointwise_site* site, tn_prepared* prepared) {
  pointwise* bound;
  const tn_status status = check_program(errors, site);
  (void)services;
  if (status != TN_OK) return status;
  bound = (pointwise*)bind(on, errors, sizeof *bound + program_bytes(site->program), prepared, run_pointwise);
  if (bound == NULL) return TN_OUT_OF_MEMORY;
  bound->of = kept_program((uint8_t*)(bound + 1), site, NULL, NULL);
  prepared->workspace_bytes = values_bytes(site);
  return TN_OK;
}

/* ---- the tables */

static const tn_gemm_table gemm_table = {.size = sizeof(tn_gemm_table), .prepare = prepare_gemm};
static const tn_pointwise_table pointwise_table = {
    .size = sizeof(tn_pointwise_table), .opset = TN_OPSET, .prepare = prepare_pointwise};
static const tn_gemm_epilogue_table epilogue_table = {.size = sizeof(tn_gemm_epilogue_table),
                                                      .opset = TN_OPSET,
                                                      .supports = supports_epilogue,
                                                      .prepare = prepare_epilogue};
static const tn_gather_table gather_table = {.size = sizeof(tn_gather_table), .prepare = prepare_gather};
static const tn_move_table move_table = {.size = sizeof(tn_move_table), .prepare = prepare_move};
static const tn_segment_table segment_table = {.size = sizeof(tn_segment_table), .prepare = prepare_segment};
static const tn_row_sparse_table row_sparse_table = {.size = sizeof(tn_row_sparse_table),
                                                     .opset = TN_OPSET,
                                                     .prepare_coalesce = prepare_coalesce,
                                                     .prepare_update = prepare_update};
static const tn_native_table native_table = {.size = sizeof(tn_native_table), .stream = native_stream};
static const char* const tables[] = {TN_GEMM,    TN_POINTWISE,        TN_GEMM_EPILOGUE, TN_GATHER, TN_MOVE,
                                     TN_SEGMENT, TN_ROW_SPARSE_TABLE, TN_NATIVE,        NULL};

static const void* extension(void* user, const char* id) {
  const void* const values[] = {&gemm_table, &pointwise_table, &epilogue_table,   &gather_table,
                                &move_table, &segment_table,   &row_sparse_table, &native_table};
  (void)user;
  for (int i = 0; tables[i] != NULL; ++i)
    if (strcmp(id, tables[i]) == 0) return values[i];
  return NULL;
}

#define DEVICE(name, text, number)                                                                            \
  static const tn_device_description name##_description = {.size = sizeof(tn_device_description),             \
                                                           .dlpack_type = (number) == 0 ? kDLCPU : kDLExtDev, \
                                                           .kind = "museum." #name,                           \
                                                           .doc = text,                                       \
                                                           .tables = tables};                                 \
  static const tn_device_type name##_type = {.size = sizeof(tn_device_type),                                  \
                                             .description = &name##_description,                              \
                                             .count = count,                                                  \
                                             .open = open_device,                                             \
                                             .close = close_device,                                           \
                                             .properties = properties,                                        \
                                             .allocate = allocate,                                            \
                                             .release = release,                                              \
                                             .copy = copy,                                                    \
                                             .fill = fill,                                                    \
                                             .stream_create = make_handle,                                    \
                                             .stream_destroy = drop_handle,                                   \
                                             .stream_wait = wait_for,                                         \
                                             .event_create = make_handle,                                     \
                                             .event_destroy = drop_handle,                                    \
                                             .event_record = order,                                           \
                                             .event_wait = order,                                             \
                                             .extension = extension,                                          \
                                             .user = (void*)(uintptr_t)&shifts[number]}
DEVICE(near, "Plain loops over the memory of the host", 0);
DEVICE(far, "Plain loops over memory that the host cannot address", 1);

static const tn_device_type* const devices[] = {&near_type, &far_type};
static const tn_plugin plugin = {.size = sizeof(tn_plugin),
                                 .abi = {TN_ABI_MAJOR, TN_ABI_MINOR, 2, 0},
                                 .id = "museum.device",
                                 .version = "1.0.0",
                                 .doc = "An exhibit: two devices",
                                 .license = "Apache-2.0",
                                 .isa = "",
                                 .devices_count = 2,
                                 .devices = devices};

const tn_plugin* tenon_plugin(void) { return &plugin; }

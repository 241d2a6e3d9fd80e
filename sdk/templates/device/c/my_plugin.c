/* The smallest device that trains a network: the memory of the host, synchronous calls, and two primitives,
 * tenon.gemm/1 and tenon.pointwise/1, in plain loops. Layers that need others (gather, concat, sequences) and programs
 * that draw random numbers are refused. Replace the loops by calls of your hardware, then the memory by its memory.
 * SPDX-License-Identifier: MIT */
#define TN_TARGET_MINOR 2 /* runs on hosts from 0.2 on; what is newer does not compile */

#include <stdio.h>
#include <tenon/op_value.h>
#include <tenon/plugin.h>

TN_RESERVE_NOTE(4096); /* room for the manifest, if the plugin is built without CMake */

/* ---- memory, streams, events: an open device is the host's service of memory; nothing runs later, so streams and
 * events have no state, and their handles are the device */

static const tn_memory* memory_of(void* device) { return (const tn_memory*)device; }

static int32_t count(void* user, const tn_errors* errors) {
  (void)user, (void)errors;
  return 1;
}
static tn_status open_device(const tn_device_open* open, void** device) {
  const void* memory = open->services->extension(open->services->self, TN_MEMORY);
  if (open->index != 0) return tn_fail(open->errors, TN_NOT_FOUND, "index", "there is one device, number 0");
  if (memory == NULL) return tn_fail(open->errors, TN_UNSUPPORTED, NULL, "needs the service " TN_MEMORY);
  *device = (void*)memory;
  return TN_OK;
}
static void close_device(void* device) { (void)device; }
static tn_status properties(void* device, const tn_errors* errors, tn_device_properties* to) {
  (void)device, (void)errors;
  to->host_memory = 1;
  snprintf(to->name, sizeof to->name, "my_plugin");
  to->memory_bytes = 0; /* unknown */
  return TN_OK;
}
static void* allocate(void* device, const tn_errors* errors, uint64_t bytes) {
  void* made = memory_of(device)->allocate(memory_of(device)->self, bytes + 1);
  if (made == NULL) (void)tn_fail(errors, TN_OUT_OF_MEMORY, NULL, "the host has not so much memory");
  return made;
}
static void release(void* device, void* memory, uint64_t bytes) {
  memory_of(device)->release(memory_of(device)->self, memory, bytes + 1);
}
static tn_status copy(void* device, const tn_errors* errors, const tn_copy* it) {
  (void)device, (void)errors;
  if (it->bytes > 0) memmove(it->to, it->from, it->bytes);
  return TN_OK;
}
static tn_status fill(void* device, const tn_errors* errors, void* stream, void* memory, uint8_t value,
                      uint64_t bytes) {
  (void)device, (void)errors, (void)stream;
  if (bytes > 0) memset(memory, value, bytes);
  return TN_OK;
}
static tn_status make_handle(void* device, const tn_errors* errors, void** handle) {
  (void)errors;
  *handle = device;
  return TN_OK;
}
static void drop_handle(void* device, void* handle) { (void)device, (void)handle; }
static tn_status wait_for(void* device, const tn_errors* errors, void* stream) {
  (void)device, (void)errors, (void)stream;
  return TN_OK;
}
static tn_status order(void* device, const tn_errors* errors, void* event, void* stream) {
  (void)device, (void)errors, (void)event, (void)stream;
  return TN_OK;
}

/* ---- elements of any type, as doubles */

static double load(tn_dtype type, const void* from, int64_t i) {
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
static void store(tn_dtype type, void* to, int64_t i, double value) {
  switch (type) {
    case TN_F32:
      ((float*)to)[i] = (float)value;
      break;
    case TN_F64:
      ((double*)to)[i] = value;
      break;
    case TN_I32:
      ((int32_t*)to)[i] = (int32_t)value;
      break;
    case TN_I64:
      ((int64_t*)to)[i] = (int64_t)value;
      break;
    default:
      ((uint8_t*)to)[i] = value != 0;
      break; /* TN_BOOL */
  }
}
static int is_loaded(tn_dtype type) {
  return type == TN_F32 || type == TN_F64 || type == TN_BOOL ||
         (tn_dtype_code(type) <= 1 && tn_dtype_bits(type) >= 8 && type != TN_DTYPE(1, 64));
}
static int is_stored(tn_dtype type) {
  return type == TN_F32 || type == TN_F64 || type == TN_I32 || type == TN_I64 || type == TN_BOOL;
}

/* A prepared call, followed by the lists that it keeps. */
typedef struct binding {
  const tn_memory* memory;
  uint64_t bytes;
} binding;

static void* make_binding(void* device, const tn_errors* errors, uint64_t bytes) {
  binding* made = (binding*)memory_of(device)->allocate(memory_of(device)->self, bytes);
  if (made == NULL) {
    (void)tn_fail(errors, TN_OUT_OF_MEMORY, NULL, "no memory for a call");
    return NULL;
  }
  made->memory = memory_of(device);
  made->bytes = bytes;
  return made;
}
static void destroy(void* self) {
  binding it = *(binding*)self;
  it.memory->release(it.memory->self, self, it.bytes);
}

/* ---- tenon.gemm/1: C = alpha op(A) op(B), for each matrix of a batch */

typedef struct product {
  binding base;
  tn_gemm gemm;
} product;

static tn_status run_gemm(void* self, const tn_execution* execution, const tn_call* call) {
  const tn_gemm* it = &((product*)self)->gemm;
  const int64_t batch = tn_dim_value(&it->batch, execution->symbols), m = tn_dim_value(&it->m, execution->symbols);
  const int64_t n = tn_dim_value(&it->n, execution->symbols), k = tn_dim_value(&it->k, execution->symbols);
  const uint8_t *a = tn_data(call->inputs[0]), *b = tn_data(call->inputs[1]);
  uint8_t* c = tn_data(call->outputs[0]);
  if (call->requests[0] == TN_REQUEST_NONE) return TN_OK;
  for (int64_t g = 0; g < batch; ++g)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        const int64_t at = (g * m + i) * n + j;
        double sum = 0; /* in the order of k alone, so that a row does not depend on the others */
        for (int64_t l = 0; l < k; ++l)
          sum += load(it->dtype, a, g * m * k + (it->flags & TN_TRANSPOSE_A ? l * m + i : i * k + l)) *
                 load(it->dtype, b, g * k * n + (it->flags & TN_TRANSPOSE_B ? j * k + l : l * n + j));
        store(it->dtype, c, at, it->alpha * sum + (call->requests[0] == TN_REQUEST_ADD ? load(it->dtype, c, at) : 0));
      }
  return TN_OK;
}

static tn_status prepare_gemm(void* device, const tn_services* services, const tn_errors* errors, const tn_gemm* gemm,
                              tn_prepared* prepared) {
  product* made;
  (void)services;
  if (gemm->dtype != TN_F32 && gemm->dtype != TN_F64)
    return tn_fail(errors, TN_UNSUPPORTED, NULL, "products of other types than float32 and float64");
  made = (product*)make_binding(device, errors, sizeof(product));
  if (made == NULL) return TN_OUT_OF_MEMORY;
  memcpy(&made->gemm, gemm, gemm->size < sizeof(tn_gemm) ? gemm->size : sizeof(tn_gemm));
  prepared->binding = made;
  prepared->run = run_gemm;
  prepared->destroy = destroy;
  return TN_OK;
}

/* ---- tenon.pointwise/1: one value after the other, each in full and as doubles, in the workspace. Ints are exact
 * below 2^53, and do not wrap around. */

typedef struct pointwise {
  binding base;
  tn_dim rows, columns;
  uint32_t instructions_count, inputs_count, outputs_count;
  const tn_instruction* instructions;
  const tn_program_output* outputs;
  const tn_dtype *input_types, *output_types;
  const uint8_t* extents;
} pointwise;

/* The grid of a run, and the values. */
typedef struct grid {
  const pointwise* of;
  int64_t rows, columns;
  double* values; /* [instructions, rows * columns] */
} grid;

static int64_t elements(uint8_t extent, int64_t rows, int64_t columns) {
  return (extent & TN_PER_ROW ? rows : 1) * (extent & TN_PER_COLUMN ? columns : 1);
}
static double* value_at(const grid* g, int32_t number, int64_t row, int64_t column) {
  const uint8_t extent = g->of->extents[number];
  const int64_t width = extent & TN_PER_COLUMN ? g->columns : 1;
  return g->values + number * g->rows * g->columns + (extent & TN_PER_ROW ? row * width : 0) +
         (extent & TN_PER_COLUMN ? column : 0);
}
static void reduce(const grid* g, int32_t number, const tn_instruction* in) {
  const uint8_t to = g->of->extents[number], from = g->of->extents[in->a];
  for (int64_t i = 0; i < elements(to, g->rows, g->columns); ++i) value_at(g, number, 0, 0)[i] = tn_op_start(in->op);
  for (int64_t r = 0; r < (from & TN_PER_ROW ? g->rows : 1); ++r)
    for (int64_t c = 0; c < (from & TN_PER_COLUMN ? g->columns : 1); ++c) {
      double* sum = value_at(g, number, r, c);
      *sum = tn_op_value(in->op, in->kind, *sum, *value_at(g, in->a, r, c), 0);
    }
}

static void compute(const grid* g, int32_t number, const tn_call* call) {
  const tn_instruction* in = &g->of->instructions[number];
  const uint8_t extent = g->of->extents[number];
  const int8_t operands = tn_op_info(in->op).operands;
  double* to = value_at(g, number, 0, 0);
  if (tn_op_info(in->op).op_class == TN_CLASS_REDUCTION) {
    reduce(g, number, in);
    return;
  }
  for (int64_t r = 0; r < (extent & TN_PER_ROW ? g->rows : 1); ++r)
    for (int64_t c = 0; c < (extent & TN_PER_COLUMN ? g->columns : 1); ++c, ++to) {
      if (in->op == TN_OP_INPUT)
        *to = load(g->of->input_types[in->a], tn_data(call->inputs[in->a]), to - value_at(g, number, 0, 0));
      else if (in->op == TN_OP_CONSTANT)
        *to = tn_op_value(TN_OP_CAST, in->kind, in->number, 0, 0);
      else if (in->op == TN_OP_ROW || in->op == TN_OP_COLUMN)
        *to = (double)(in->op == TN_OP_ROW ? r : c);
      else
        *to = tn_op_value(in->op, in->kind, *value_at(g, in->a, r, c), operands > 1 ? *value_at(g, in->b, r, c) : 0,
                          operands > 2 ? *value_at(g, in->c, r, c) : 0);
    }
}

static tn_status run_pointwise(void* self, const tn_execution* execution, const tn_call* call) {
  const pointwise* it = (const pointwise*)self;
  const grid g = {it, tn_dim_value(&it->rows, execution->symbols), tn_dim_value(&it->columns, execution->symbols),
                  (double*)call->workspace};
  for (uint32_t i = 0; i < it->instructions_count; ++i) compute(&g, (int32_t)i, call);
  for (uint32_t o = 0; o < it->outputs_count; ++o) {
    const int32_t number = it->outputs[o].value;
    const double* from = value_at(&g, number, 0, 0);
    uint8_t* to = tn_data(call->outputs[o]);
    if (call->requests[o] == TN_REQUEST_NONE) continue;
    for (int64_t i = 0; i < elements(it->extents[number], g.rows, g.columns); ++i)
      store(it->output_types[o], to, i,
            from[i] + (call->requests[o] == TN_REQUEST_ADD ? load(it->output_types[o], to, i) : 0));
  }
  return TN_OK;
}

/* Copies a list behind the binding; returns where the copy is. */
static void* keep(uint8_t** at, const void* from, uint64_t bytes) {
  void* to = *at;
  if (bytes > 0) memcpy(to, from, bytes);
  *at += (bytes + 7) / 8 * 8;
  return to;
}

static tn_status check_program(const tn_errors* errors, const tn_pointwise_site* site) {
  const tn_program* program = site->program;
  char message[96];
  for (uint32_t i = 0; i < program->instructions_count; ++i) {
    const tn_opcode info = tn_op_info(program->instructions[i].op);
    if (info.op_class != TN_CLASS_NONE && info.op_class != TN_CLASS_RANDOM) continue;
    snprintf(message, sizeof message, "programs with the opcode %u (%s)", program->instructions[i].op, info.name);
    return tn_fail(errors, TN_UNSUPPORTED, NULL, message);
  }
  for (uint32_t i = 0; i < program->inputs_count; ++i)
    if (!is_loaded(site->inputs[i]))
      return tn_fail(errors, TN_UNSUPPORTED, NULL, "programs with inputs of an unknown type");
  for (uint32_t i = 0; i < program->outputs_count; ++i)
    if (!is_stored(site->outputs[i]))
      return tn_fail(errors, TN_UNSUPPORTED, NULL, "programs with outputs of an unknown type");
  return TN_OK;
}

static tn_status prepare_pointwise(void* device, const tn_services* services, const tn_errors* errors,
                                   const tn_pointwise_site* site, tn_prepared* prepared) {
  const tn_program* program = site->program;
  const uint64_t n = program->instructions_count, in = program->inputs_count, out = program->outputs_count;
  const uint64_t lists = n * (sizeof(tn_instruction) + 1) + in * sizeof(tn_dtype) +
                         out * (sizeof(tn_program_output) + sizeof(tn_dtype)) + 5 * sizeof(uint64_t);
  pointwise* made;
  uint8_t* at;
  const tn_status status = check_program(errors, site);
  (void)services;
  if (status != TN_OK) return status;
  made = (pointwise*)make_binding(device, errors, sizeof(pointwise) + lists);
  if (made == NULL) return TN_OUT_OF_MEMORY;
  at = (uint8_t*)(made + 1);
  made->rows = site->rows;
  made->columns = site->columns;
  made->instructions_count = program->instructions_count;
  made->inputs_count = program->inputs_count;
  made->outputs_count = program->outputs_count;
  made->instructions = (const tn_instruction*)keep(&at, program->instructions, n * sizeof(tn_instruction));
  made->outputs = (const tn_program_output*)keep(&at, program->outputs, out * sizeof(tn_program_output));
  made->input_types = (const tn_dtype*)keep(&at, site->inputs, in * sizeof(tn_dtype));
  made->output_types = (const tn_dtype*)keep(&at, site->outputs, out * sizeof(tn_dtype));
  made->extents = (const uint8_t*)keep(&at, site->extents, n);
  prepared->binding = made;
  prepared->workspace_bytes = n * (uint64_t)(site->rows.bound * site->columns.bound) * sizeof(double);
  prepared->run = run_pointwise;
  prepared->destroy = destroy;
  return TN_OK;
}

/* ---- the tables */

static const tn_gemm_table gemm_table = {.size = sizeof(tn_gemm_table), .prepare = prepare_gemm};
static const tn_pointwise_table pointwise_table = {
    .size = sizeof(tn_pointwise_table), .opset = TN_OPSET, .prepare = prepare_pointwise};
static const char* const tables[] = {TN_GEMM, TN_POINTWISE, NULL};

static const void* extension(void* user, const char* id) {
  (void)user;
  if (strcmp(id, TN_GEMM) == 0) return &gemm_table;
  if (strcmp(id, TN_POINTWISE) == 0) return &pointwise_table;
  return NULL;
}

static const tn_device_description description = {
    .size = sizeof(tn_device_description),
    .dlpack_type = kDLExtDev,
    .kind = "example.my_plugin",
    .doc = "Plain loops: products and pointwise programs in float32 and float64",
    .tables = tables,
};
static const tn_device_type device_type = {
    .size = sizeof(tn_device_type),
    .description = &description,
    .count = count,
    .open = open_device,
    .close = close_device,
    .properties = properties,
    .allocate = allocate,
    .release = release,
    .copy = copy,
    .fill = fill,
    .stream_create = make_handle,
    .stream_destroy = drop_handle,
    .stream_wait = wait_for,
    .event_create = make_handle,
    .event_destroy = drop_handle,
    .event_record = order,
    .event_wait = order,
    .extension = extension,
};
static const tn_device_type* const devices[] = {&device_type};
static const tn_plugin plugin = {
    .size = sizeof(tn_plugin),
    .abi = {TN_ABI_MAJOR, TN_ABI_MINOR, TN_TARGET_MINOR, 0},
    .id = "example.my_plugin",
    .version = "0.1.0",
    .doc = "A device of plain loops",
    .license = "MIT",
    .isa = "",
    .devices_count = 1,
    .devices = devices,
};

const tn_plugin* tenon_plugin(void) { return &plugin; }

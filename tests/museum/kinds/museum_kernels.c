/* An exhibit in C: native kernels of "cpu": with a shared object, the device's product, draws, buffers, saved tensors,
 * row gradients, rows that it counts itself, and one of two fused layers. SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "layer.h"

static const tn_port in_port = PORT("in", 0), out_port = PORT("out", 0);
static const tn_port* const in_ports[] = {&in_port};
static const tn_port* const out_ports[] = {&out_port};
static const char* const product_names[] = {"weight", "runs"};
static const tn_dtype dtypes[] = {TN_F32};

#define LAYER(name_, text, lower_, ...)                                                          \
  static const tn_layer_description name_##_description = {.size = sizeof(tn_layer_description), \
                                                           .role = TN_ROLE_LAYER,                \
                                                           .type = "museum." #name_,             \
                                                           .doc = text,                          \
                                                           .inputs_count = 1,                    \
                                                           .outputs_count = 1,                   \
                                                           .inputs = in_ports,                   \
                                                           .outputs = out_ports,                 \
                                                           .state_version = 1,                   \
                                                           __VA_ARGS__};                         \
  static const tn_layer_type name_ = {                                                           \
      .size = sizeof(tn_layer_type), .description = &name_##_description, .plan = plan_##name_, .lower = lower_}
#define KERNEL(name_, ...)                                             \
  static const tn_kernel name_##_kernel = {.size = sizeof(tn_kernel),  \
                                           .score = 10,                \
                                           .type = "museum." #name_,   \
                                           .device = "cpu",            \
                                           .name = "museum_" #name_,   \
                                           .dtypes_count = 1,          \
                                           .dtypes = dtypes,           \
                                           .supports = supports,       \
                                           .query = query_##name_,     \
                                           .prepare = prepare_##name_, \
                                           __VA_ARGS__}

static float* floats(const tn_tensor* tensor) { return (float*)(void*)tn_data(tensor); }
static int64_t* ints(const tn_tensor* tensor) { return (int64_t*)(void*)tn_data(tensor); }
static void add_or_put(float* to, uint8_t request, float value) {
  *to = request == TN_REQUEST_ADD ? *to + value : value;
}

static tn_status supports(const tn_kernel_site* site, int32_t* score) {
  if (site->compute != TN_F32) return tn_fail(site->errors, TN_UNSUPPORTED, NULL, "is for float32");
  *score += 1;
  return TN_OK;
}

/* A binding without data of its own. */
static tn_status bound(tn_prepared* prepared, int32_t direction,
                       tn_status (*forward)(void*, const tn_execution*, const tn_call*),
                       tn_status (*backward)(void*, const tn_execution*, const tn_call*)) {
  prepared->run = direction == TN_BACKWARD ? backward : forward;
  return direction == TN_FORWARD || direction == TN_BACKWARD ? TN_OK : TN_UNSUPPORTED;
}

/* ---- museum.product: in [samples, 2] times a weight [2, 2], by the product of the device; counts its runs */

typedef struct shared_state {
  const tn_memory* memory;
  const tn_gemm_table* products;
  void* device;
  int64_t bindings;
} shared_state;

static tn_status open_shared(const tn_services* services, const tn_errors* errors, const tn_device* device, void* user,
                             void** to) {
  const tn_memory* memory = (const tn_memory*)services->extension(services->self, TN_MEMORY);
  const tn_log* log = (const tn_log*)services->extension(services->self, TN_LOG);
  shared_state* object;
  if (memory == NULL || user != (void*)(uintptr_t)dtypes) return TN_UNSUPPORTED;
  object = (shared_state*)memory->allocate(memory->self, sizeof *object);
  if (object == NULL) return tn_fail(errors, TN_OUT_OF_MEMORY, NULL, "no memory for a shared object");
  object->memory = memory;
  object->products = (const tn_gemm_table*)device->table(device->self, TN_GEMM, sizeof(tn_gemm_table));
  object->device = device->instance;
  object->bindings = 0;
  if (log != NULL) log->write(log->self, 1, "the museum shares an object");
  *to = object;
  return TN_OK;
}
static void close_shared(void* self) {
  shared_state* object = (shared_state*)self;
  object->memory->release(object->memory->self, object, sizeof *object);
}
static const tn_shared shared_object = {
    .size = sizeof(tn_shared), .open = open_shared, .close = close_shared, .user = (void*)(uintptr_t)dtypes};

typedef struct product_call {
  shared_state* object;
  tn_prepared inner;
} product_call;

static tn_status plan_product(const tn_planner* planner) {
  const tn_spec* in = planner->inputs[0];
  const tn_dim dims[2] = {tn_dim_constant(2), tn_dim_constant(2)};
  const tn_spec one = spec_of(TN_COMPUTE, 1, dims + 1);
  const tn_parameter runs = {.size = sizeof(tn_parameter), .suffix = "runs", .spec = &one, .merge = TN_MERGE_FIRST};
  if (!is_matrix(in) || in->dims[1].offset != 2) return bad_input(planner, "in");
  if (parameter_of(planner, "weight", 2, dims, 1, 0) < 0 || planner->buffer(planner->self, &runs) < 0)
    return TN_INVALID;
  return output_of(planner, 0, 2, in->dims);
}
static tn_status query_product(const tn_kernel_site* site, tn_kernel_needs* needs) {
  needs->reads_in[0] = needs->reads_in[site->inputs_count] = 1;
  return TN_OK;
}
static tn_status multiply(void* self, const tn_execution* execution, const tn_call* call) {
  const product_call* of = (const product_call*)self;
  const uint8_t* before = tn_data(call->inputs[2]);
  tn_call inner = *call;
  tn_status status;
  inner.inputs_count = 2;
  inner.outputs_count = 1;
  status = of->inner.run(of->inner.binding, execution, &inner);
  if (status == TN_OK && call->requests[1] != TN_REQUEST_NONE)
    for (int i = 0; i < 2; ++i) floats(call->outputs[1])[i] = ((const float*)(const void*)before)[i] + (float)(1 + i);
  return status;
}
/* Row i of the gradient of the input, then column i of that of the weight. */
static void multiply_back_row(void* argument, int32_t phase, int64_t i, int32_t worker) {
  const tn_call* call = (const tn_call*)argument;
  const float *in = floats(call->inputs[0]), *weight = floats(call->inputs[1]), *slope = floats(call->inputs[4]);
  const int64_t rows = call->inputs[0]->dl.shape[0];
  (void)worker;
  if (call->requests[phase] == TN_REQUEST_NONE) return;
  if (phase == 0) {
    for (int64_t k = 0; k < 2; ++k)
      add_or_put(&floats(call->outputs[0])[2 * i + k], call->requests[0],
                 slope[2 * i] * weight[2 * k] + slope[2 * i + 1] * weight[2 * k + 1]);
    return;
  }
  for (int64_t k = 0; k < 2; ++k) {
    float sum = 0;
    for (int64_t r = 0; r < rows; ++r) sum += in[2 * r + k] * slope[2 * r + i];
    add_or_put(&floats(call->outputs[1])[2 * k + i], call->requests[1], sum);
  }
}
static tn_status multiply_back(void* self, const tn_execution* execution, const tn_call* call) {
  const int64_t sizes[2] = {call->inputs[0]->dl.shape[0], 2};
  (void)self;
  execution->parallel->phases(execution->parallel->self, 2, sizes, multiply_back_row, (void*)(uintptr_t)call);
  return TN_OK;
}
static void destroy_product(void* self) {
  product_call* of = (product_call*)self;
  shared_state* object = of->object;
  if (of->inner.destroy != NULL) of->inner.destroy(of->inner.binding);
  --object->bindings;
  object->memory->release(object->memory->self, of, sizeof *of);
}
static tn_status prepare_product(const tn_kernel_site* site, int32_t direction, tn_prepared* prepared) {
  shared_state* object = (shared_state*)site->shared;
  const tn_gemm gemm = {.size = sizeof(tn_gemm),
                        .dtype = TN_F32,
                        .batch = tn_dim_constant(1),
                        .m = site->inputs[0]->dims[0],
                        .n = tn_dim_constant(2),
                        .k = tn_dim_constant(2),
                        .alpha = 1};
  const tn_prepared empty = {.size = sizeof(tn_prepared)};
  product_call* of;
  tn_status status;
  if (direction == TN_BACKWARD) return bound(prepared, direction, NULL, multiply_back);
  if (object->products == NULL) return tn_fail(site->errors, TN_UNSUPPORTED, NULL, "the device has no products");
  of = (product_call*)object->memory->allocate(object->memory->self, sizeof *of);
  if (of == NULL) return tn_fail(site->errors, TN_OUT_OF_MEMORY, NULL, "no memory for a binding");
  of->object = object;
  of->inner = empty;
  status = object->products->prepare(object->device, site->services, site->errors, &gemm, &of->inner);
  if (status != TN_OK) {
    object->memory->release(object->memory->self, of, sizeof *of);
    return status;
  }
  ++object->bindings;
  prepared->binding = of;
  prepared->workspace_bytes = of->inner.workspace_bytes;
  prepared->run = multiply;
  prepared->destroy = destroy_product;
  return TN_OK;
}
LAYER(product, "in times a weight", NULL, .parameters_count = 2, .parameters = product_names);
KERNEL(product, .shared = &shared_object);

/* ---- museum.noise: in times a draw in a training, half of it otherwise; saves the draws */

static tn_status plan_noise(const tn_planner* planner) { return planner->output(planner->self, 0, planner->inputs[0]); }
static tn_status lower_noise(const tn_attributes* attributes, const tn_builder* builder) {
  formula f = {0};
  const tn_ref in = builder->input(builder->self, 0, 0);
  const int32_t x = operand(&f, TN_FULL, TN_FLOAT);
  const int32_t by = builder->training ? op(&f, TN_OP_UNIFORM, TN_FLOAT, 0, 0, 0) : constant(&f, TN_FLOAT, 0.5);
  tn_ref out;
  (void)attributes;
  if (builder->training) f.list[by].extent = TN_FULL;
  result(&f, binary(&f, TN_OP_MUL, x, by), TN_COMPUTE);
  apply(&f, builder, 1, &in, &out, NULL);
  builder->output(builder->self, 0, out);
  return builder->status(builder->self);
}
static float draw_of(const tn_random* random, uint64_t draw, uint64_t element) {
  uint32_t x[4] = {(uint32_t)(element / 4), (uint32_t)draw, (uint32_t)random->step, (uint32_t)(random->step >> 32)};
  uint32_t key[2] = {(uint32_t)random->seed, (uint32_t)(random->seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = (uint64_t)0xD2511F53u * x[0], b = (uint64_t)0xCD9E8D57u * x[2];
    const uint32_t now[4] = {(uint32_t)(b >> 32) ^ x[1] ^ key[0], (uint32_t)b, (uint32_t)(a >> 32) ^ x[3] ^ key[1],
                             (uint32_t)a};
    memcpy(x, now, sizeof x);
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return (float)(x[element % 4] >> 8) / 16777216.0F;
}
static tn_status query_noise(const tn_kernel_site* site, tn_kernel_needs* needs) {
  needs->draws = site->training ? 1 : 0;
  return needs->saved(needs->self, site->inputs[0]) < 0 ? TN_INVALID : TN_OK;
}
static tn_status make_noise(void* self, const tn_execution* execution, const tn_call* call) {
  const float* in = floats(call->inputs[0]);
  const int64_t elements = tn_elements(call->inputs[0]);
  for (int64_t i = 0; i < elements; ++i) {
    const float by = self != NULL ? draw_of(execution->random, call->draw, (uint64_t)i) : 0.5F;
    if (call->requests[1] != TN_REQUEST_NONE) floats(call->outputs[1])[i] = by;
    floats(call->outputs[0])[i] = in[i] * by;
  }
  return TN_OK;
}
static tn_status noise_back(void* self, const tn_execution* execution, const tn_call* call) {
  (void)self, (void)execution;
  for (int64_t i = 0; call->requests[0] != TN_REQUEST_NONE && i < tn_elements(call->inputs[2]); ++i)
    floats(call->outputs[0])[i] = floats(call->inputs[3])[i] * floats(call->inputs[2])[i];
  return TN_OK;
}
static tn_status prepare_noise(const tn_kernel_site* site, int32_t direction, tn_prepared* prepared) {
  static char training;
  prepared->binding = site->training ? &training : NULL;
  return bound(prepared, direction, make_noise, noise_back);
}
LAYER(noise, "in times a draw", lower_noise, .parameters_count = 0);
KERNEL(noise, .fusion = NULL);

/* ---- museum.chosen: the rows of [rows, 1] above 0 */

static tn_status plan_chosen(const tn_planner* planner) {
  const tn_spec* in = planner->inputs[0];
  tn_dim dims[2];
  const tn_rows_rule rule = {
      .size = sizeof(tn_rows_rule), .rule = TN_ROWS_DATA, .a = in, .bound = in->rank == 2 ? in->dims : NULL};
  if (in->storage != TN_RAGGED || in->rank != 2 || in->dims[1].offset != 1) return bad_input(planner, "in");
  if (planner->rows(planner->self, &rule, &dims[0]) < 0) return TN_INVALID;
  dims[1] = in->dims[1];
  return output_of(planner, 0, 2, dims);
}
static tn_status query_chosen(const tn_kernel_site* site, tn_kernel_needs* needs) {
  const tn_spec ids = spec_of(TN_I64, 1, site->inputs[0]->dims);
  return needs->saved(needs->self, &ids) < 0 ? TN_INVALID : TN_OK;
}
static tn_status choose(void* self, const tn_execution* execution, const tn_call* call) {
  const float* in = floats(call->inputs[0]);
  const tn_ragged* part = (const tn_ragged*)call->inputs[0]->part;
  const int64_t rows = call->inputs[0]->dl.shape[0];
  int64_t sequence = 0, count = 0;
  (void)self, (void)execution;
  ints(call->outputs[1])[0] = 0;
  for (int64_t r = 0; r <= rows; ++r) {
    while (sequence + 1 < call->outputs[1]->dl.shape[0] && part->offsets[0][sequence + 1] == r)
      ints(call->outputs[1])[++sequence] = count;
    if (r == rows || !(in[r] > 0)) continue;
    if (call->requests[3] != TN_REQUEST_NONE) ints(call->outputs[3])[count] = r;
    floats(call->outputs[0])[count++] = in[r];
  }
  ints(call->outputs[2])[0] = count;
  return TN_OK;
}
static tn_status choose_back(void* self, const tn_execution* execution, const tn_call* call) {
  const int64_t* ids = ints(call->inputs[2]);
  const float* slope = floats(call->inputs[3]);
  (void)self, (void)execution;
  if (call->requests[0] == TN_REQUEST_NONE) return TN_OK;
  for (int64_t r = 0; r < call->outputs[0]->dl.shape[0]; ++r) floats(call->outputs[0])[r] = 0;
  for (int64_t r = 0; r < call->inputs[3]->dl.shape[0]; ++r) floats(call->outputs[0])[ids[r]] = slope[r];
  return TN_OK;
}
static tn_status prepare_chosen(const tn_kernel_site* site, int32_t direction, tn_prepared* prepared) {
  (void)site;
  return bound(prepared, direction, choose, choose_back);
}
LAYER(chosen, "the rows above 0", NULL, .parameters_count = 0);
KERNEL(chosen, .fusion = NULL);

/* ---- museum.lookup of another exhibit: its gradient has a row for each id */

static tn_status query_lookup(const tn_kernel_site* site, tn_kernel_needs* needs) {
  needs->reads_in[0] = 1;
  return needs->rows(needs->self, 0, &site->inputs[0]->dims[0]);
}
static int64_t id_of(const tn_tensor* ids, int64_t i) {
  return ids->dl.dtype.bits == 64 ? ((const int64_t*)(const void*)tn_data(ids))[i]
                                  : ((const int32_t*)(const void*)tn_data(ids))[i];
}
static tn_status look_up(void* self, const tn_execution* execution, const tn_call* call) {
  (void)self, (void)execution;
  for (int64_t i = 0; i < call->inputs[0]->dl.shape[0]; ++i)
    for (int64_t c = 0; c < 2; ++c)
      floats(call->outputs[0])[2 * i + c] = floats(call->inputs[1])[2 * id_of(call->inputs[0], i) + c];
  return TN_OK;
}
static tn_status look_up_back(void* self, const tn_execution* execution, const tn_call* call) {
  const int64_t count = call->inputs[0]->dl.shape[0];
  (void)self, (void)execution; /* inputs: ids, table, out, slope; outputs: (of the ids), rows, their ids */
  if (call->requests[1] == TN_REQUEST_NONE) return TN_OK;
  for (int64_t i = 0; i < 2 * count; ++i) floats(call->outputs[1])[i] = floats(call->inputs[3])[i];
  for (int64_t i = 0; i < count; ++i) ints(call->outputs[2])[i] = id_of(call->inputs[0], i);
  return TN_OK;
}
static tn_status prepare_lookup(const tn_kernel_site* site, int32_t direction, tn_prepared* prepared) {
  (void)site;
  return bound(prepared, direction, look_up, look_up_back);
}
KERNEL(lookup, .state_version = 1);

/* ---- museum.square, then museum.root of it plus 1, in one kernel */

static tn_status plan_square(const tn_planner* planner) {
  return planner->output(planner->self, 0, planner->inputs[0]);
}
static tn_status plan_root(const tn_planner* planner) { return planner->output(planner->self, 0, planner->inputs[0]); }
static tn_status lower_square(const tn_attributes* attributes, const tn_builder* builder) {
  formula f = {0};
  const tn_ref in = builder->input(builder->self, 0, 0);
  const int32_t x = operand(&f, TN_FULL, TN_FLOAT);
  tn_ref out;
  (void)attributes;
  result(&f, binary(&f, TN_OP_MUL, x, x), TN_COMPUTE);
  apply(&f, builder, 1, &in, &out, NULL);
  builder->output(builder->self, 0, out);
  return builder->status(builder->self);
}
static tn_status lower_root(const tn_attributes* attributes, const tn_builder* builder) {
  formula f = {0};
  const tn_ref in = builder->input(builder->self, 0, 0);
  const int32_t x = operand(&f, TN_FULL, TN_FLOAT);
  tn_ref out;
  (void)attributes;
  result(&f, unary(&f, TN_OP_SQRT, binary(&f, TN_OP_ADD, x, constant(&f, TN_FLOAT, 1))), TN_COMPUTE);
  apply(&f, builder, 1, &in, &out, NULL);
  builder->output(builder->self, 0, out);
  return builder->status(builder->self);
}
static tn_status query_root(const tn_kernel_site* site, tn_kernel_needs* needs) {
  const tn_fusion_site* chain = tn_fusion(site);
  if (chain == NULL || chain->layers_count != 2 || chain->sources[1][0].layer != 0) return TN_UNSUPPORTED;
  needs->reads_in[0] = 1;
  return TN_OK;
}
static tn_status square_root(void* self, const tn_execution* execution, const tn_call* call) {
  const float* in = floats(call->inputs[0]);
  (void)self, (void)execution;
  for (int64_t i = 0; i < tn_elements(call->inputs[0]); ++i) {
    if (call->requests[0] != TN_REQUEST_NONE) floats(call->outputs[0])[i] = in[i] * in[i];
    if (call->requests[1] != TN_REQUEST_NONE) floats(call->outputs[1])[i] = sqrtf(in[i] * in[i] + 1);
  }
  return TN_OK;
}
static tn_status square_root_back(void* self, const tn_execution* execution, const tn_call* call) {
  const float *in = floats(call->inputs[0]), *square = floats(call->inputs[3]), *root = floats(call->inputs[4]);
  (void)self, (void)execution;
  for (int64_t i = 0; call->requests[0] != TN_REQUEST_NONE && i < tn_elements(call->inputs[0]); ++i)
    floats(call->outputs[0])[i] =
        (square == NULL ? 0 : square[i] * 2 * in[i]) + (root == NULL ? 0 : root[i] * in[i] / sqrtf(in[i] * in[i] + 1));
  return TN_OK;
}
static tn_status prepare_root(const tn_kernel_site* site, int32_t direction, tn_prepared* prepared) {
  (void)site;
  return bound(prepared, direction, square_root, square_root_back);
}
LAYER(square, "in * in", lower_square, .parameters_count = 0);
LAYER(root, "the square root of in + 1", lower_root, .parameters_count = 0);
static const char* const chain_types[] = {"museum.square", "museum.root"};
static const tn_fusion_pattern pattern = {.size = sizeof(tn_fusion_pattern), .types_count = 2, .types = chain_types};
KERNEL(root, .fusion = &pattern);

static const tn_layer_type* const layers[] = {&product, &noise, &chosen, &square, &root};
static const tn_kernel* const kernels[] = {&product_kernel, &noise_kernel, &chosen_kernel, &lookup_kernel,
                                           &root_kernel};
PLUGIN("museum.kernels", "An exhibit: native kernels", .layers_count = COUNT(layers), .kernels_count = COUNT(kernels),
       .layers = layers, .kernels = kernels)

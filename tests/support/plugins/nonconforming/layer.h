/* The base of plugins that break one rule: the layer "bad.scale", y = x * w for each column, by a native kernel for
 * float32 and float64. A source defines NAME and the macros of its fault, then includes this file; without a fault the
 * plugin keeps all rules (conforming.c). SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <tenon/plugin.h>

TN_RESERVE_NOTE(4096);

#ifndef FORWARD
#define FORWARD(x, w) ((x) * (w))
#endif
#ifndef INPUT_GRADIENT
#define INPUT_GRADIENT(dy, w) ((dy) * (w))
#endif
#ifndef PARAMETER_GRADIENT
#define PARAMETER_GRADIENT(dy, x) ((dy) * (x))
#endif
#ifndef ADDS /* whether the gradient of the parameter is added to what is there */
#define ADDS(request) ((request) == TN_REQUEST_ADD)
#endif
#ifndef WANTS_INPUT
#define WANTS_INPUT(call) ((call)->outputs[0] != NULL)
#endif
#ifndef WORKSPACE
#define WORKSPACE 0
#endif
#ifndef BINDING
#define BINDING NULL
#endif
#ifndef REQUIRED /* the oldest host */
#define REQUIRED TN_ABI_MINOR
#endif
#ifndef STATE_VERSION
#define STATE_VERSION 1
#endif
#ifndef DOC
#define DOC "y = x * w"
#endif
/* Statements. PLAN knows `planner`; SUPPORTS `site` and `score`; QUERY `site` and `needs`; PREPARE `site`;
 * BEFORE_FORWARD, AFTER_FORWARD and AFTER_BACKWARD know `execution`, `call` and `of`. */
#ifndef PLAN
#define PLAN
#endif
#ifndef SUPPORTS
#define SUPPORTS
#endif
#ifndef QUERY
#define QUERY
#endif
#ifndef PREPARE
#define PREPARE
#endif
#ifndef BEFORE_FORWARD
#define BEFORE_FORWARD
#endif
#ifndef AFTER_FORWARD
#define AFTER_FORWARD
#endif
#ifndef AFTER_BACKWARD
#define AFTER_BACKWARD
#endif

#ifdef KERNELS
#define WITHOUT_KERNEL
#endif
#ifndef WITHOUT_KERNEL
static inline double get(const tn_tensor* tensor, int64_t i) {
  return tensor->dl.dtype.bits == 64 ? ((const double*)tn_data(tensor))[i] : (double)((const float*)tn_data(tensor))[i];
}
static inline void put(const tn_tensor* tensor, int64_t i, double value) {
  if (tensor->dl.dtype.bits == 64)
    ((double*)tn_data(tensor))[i] = value;
  else
    ((float*)tn_data(tensor))[i] = (float)value;
}

/* The sizes of a call. */
typedef struct sizes {
  int64_t rows, width;
  int32_t wide; /* float64 */
} sizes;

static sizes sizes_of(const tn_tensor* x, const tn_tensor* w) {
  const sizes result = {tn_elements(x) / w->dl.shape[0], w->dl.shape[0], x->dl.dtype.bits == 64};
  return result;
}

static tn_status forward(void* binding, const tn_execution* execution, const tn_call* call) {
  const tn_tensor *x = call->inputs[0], *w = call->inputs[1], *y = call->outputs[0];
  sizes of = sizes_of(x, w);
  (void)binding, (void)execution;
  BEFORE_FORWARD
  for (int64_t r = 0; r < of.rows; ++r)
    for (int64_t c = 0; c < of.width; ++c) {
      const int64_t i = r * of.width + c;
      put(y, i, FORWARD(get(x, i), get(w, c)));
    }
  AFTER_FORWARD
  return TN_OK;
}

/* in: x, w, y, dy; out: dx, dw */
static tn_status backward(void* binding, const tn_execution* execution, const tn_call* call) {
  const tn_tensor *x = call->inputs[0], *w = call->inputs[1], *dy = call->inputs[3];
  const sizes of = sizes_of(dy, w);
  (void)binding, (void)execution, (void)x;
  if (call->outputs[1] != NULL)
    for (int64_t c = 0; c < of.width; ++c) {
      double sum = ADDS(call->requests[1]) ? get(call->outputs[1], c) : 0;
      for (int64_t r = 0; r < of.rows; ++r)
        sum += PARAMETER_GRADIENT(get(dy, r * of.width + c), get(x, r * of.width + c));
      put(call->outputs[1], c, sum);
    }
  if (WANTS_INPUT(call))
    for (int64_t r = 0; r < of.rows; ++r)
      for (int64_t c = 0; c < of.width; ++c) {
        const int64_t i = r * of.width + c;
        put(call->outputs[0], i, INPUT_GRADIENT(get(dy, i), get(w, c)));
      }
  AFTER_BACKWARD
  return TN_OK;
}

#endif

static tn_status plan(const tn_planner* planner) {
  const tn_spec* const x = planner->inputs[0];
  tn_dim width;
  tn_spec spec = {.size = sizeof spec, .rank = 1, .dims = &width};
  tn_parameter parameter = {.size = sizeof parameter, .suffix = "w", .spec = &spec};
  if (x->rank < 2 || x->dims[x->rank - 1].symbol != TN_SYMBOL_NONE)
    return tn_fail(planner->errors, TN_INVALID, "x", "must be [samples, ..., columns]");
  width = x->dims[x->rank - 1];
  parameter.initializer.kind = TN_INIT_UNIFORM;
  parameter.initializer.a = 0.5;
  parameter.initializer.b = 1.5;
  PLAN if (planner->parameter(planner->self, &parameter) < 0) return TN_INVALID;
  tn_spec output = *x;
  output.dtype = TN_COMPUTE;
  return planner->output(planner->self, 0, &output);
}

#ifdef BODY /* records x * w */
static tn_status lower(const tn_attributes* given, const tn_builder* builder) {
  static const tn_instruction code[] = {{TN_OP_INPUT, TN_FLOAT, 0, 0, -1, -1, 0},
                                        {TN_OP_INPUT, TN_FLOAT, 0, 1, -1, -1, 0},
                                        {TN_OP_MUL, TN_FLOAT, 0, 0, 1, -1, 0}};
  static const tn_program_input inputs[] = {{TN_FULL, TN_FLOAT, 0}, {TN_PER_COLUMN, TN_FLOAT, 0}};
  static const tn_program_output outputs[] = {{2, TN_COMPUTE}};
  static const tn_program program = {sizeof program, 3, code, 2, 1, inputs, outputs};
  const tn_ref operands[] = {builder->input(builder->self, 0, 0), builder->parameter(builder->self, 0)};
  tn_pointwise call = {.size = sizeof call, .leading = 1, .program = &program, .inputs = operands};
  tn_ref result = -1;
  (void)given;
  BODY builder->pointwise(builder->self, &call, &result);
  builder->output(builder->self, 0, result);
  return builder->status(builder->self);
}
#endif

#ifndef WITHOUT_KERNEL
static const tn_dtype dtypes[] = {TN_F32, TN_F64};

static tn_status supports(const tn_kernel_site* site, int32_t* score) {
  (void)site, (void)score;
  SUPPORTS
  return TN_OK;
}
static tn_status query(const tn_kernel_site* site, tn_kernel_needs* needs) {
  needs->reads_in[0] = needs->reads_in[1] = 1;
  (void)site;
  QUERY
  return TN_OK;
}
static tn_status prepare(const tn_kernel_site* site, int32_t direction, tn_prepared* prepared) {
  (void)site;
  PREPARE
  prepared->run = direction == TN_FORWARD ? forward : backward;
  prepared->workspace_bytes = WORKSPACE;
  prepared->binding = BINDING;
  return TN_OK;
}
static const tn_kernel kernel = {.size = sizeof(tn_kernel),
                                 .score = 10,
                                 .type = "bad.scale",
                                 .device = "cpu",
                                 .name = "bad_scale",
                                 .dtypes_count = 2,
                                 .dtypes = dtypes,
                                 .supports = supports,
                                 .query = query,
                                 .prepare = prepare};
static const tn_kernel* const kernels[] = {&kernel};
#endif

static const tn_port in_port = {.size = sizeof(tn_port), .name = "x", .doc = "[samples, ..., columns]"};
static const tn_port out_port = {.size = sizeof(tn_port), .name = "y", .doc = "as x"};
static const tn_port* const in_ports[] = {&in_port};
static const tn_port* const out_ports[] = {&out_port};
static const char* const suffixes[] = {"w"};
static tn_layer_description description = {.size = sizeof(tn_layer_description),
                                           .type = "bad.scale",
                                           .doc = DOC,
                                           .inputs_count = 1,
                                           .outputs_count = 1,
                                           .inputs = in_ports,
                                           .outputs = out_ports,
                                           .parameters_count = 1,
                                           .parameters = suffixes,
                                           .state_version = STATE_VERSION};
static const tn_layer_type layer = {.size = sizeof(tn_layer_type),
                                    .description = &description,
                                    .plan = plan,
#ifdef EXTENSION
                                    .extension = EXTENSION,
#endif
#ifdef BODY
                                    .lower = lower
#endif
};
static const tn_layer_type* const layers[] = {&layer};
static const tn_plugin plugin = {.size = sizeof(tn_plugin),
                                 .abi = {TN_ABI_MAJOR, TN_ABI_MINOR, REQUIRED, 0},
                                 .id = "bad." NAME,
                                 .version = "1.0.0",
                                 .doc = "A layer that may break a rule",
                                 .license = "Apache-2.0",
                                 .isa = "",
                                 .layers_count = 1,
#ifndef WITHOUT_KERNEL
                                 .kernels_count = 1,
                                 .layers = layers,
                                 .kernels = kernels
#elif defined(KERNELS) /* those of the source */
                                 .kernels_count = 1,
                                 .layers = layers,
                                 .kernels = KERNELS
#else
                                 .layers = layers
#endif
};

const tn_plugin* tenon_plugin(void) {
#ifdef ENTRY
  ENTRY
#endif
  return &plugin;
}

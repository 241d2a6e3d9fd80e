/* A plugin in C from outside of Tenon: an LSTM cell by native kernels, after S. Hochreiter, J. Schmidhuber, "Long
 * short-term memory", 1997, with the forget gate of F. A. Gers and others, 2000. Each minibatch is one step of as many
 * sequences as it has samples; output and cell are carried to the next minibatch, and gradients stop there: truncated
 * backpropagation. The file includes itself once for each element type, and is built without the SDK's CMake package:
 * `tenon plugins seal` fills in its note. SPDX-License-Identifier: Apache-2.0 */
#ifndef REAL
#include <math.h>
#include <stdlib.h>
#include <tenon/plugin.h>

TN_RESERVE_NOTE(4096);

/* Operands of a forward call, and of a backward call after the inputs that both have. */
enum { IN = 0, WEIGHT = 1, RECURRENT = 2, BIAS = 3, H = 4, C = 5 };
enum { OUT = 0, NEXT_H = 1, NEXT_C = 2, GATES = 3 };
enum { BACK_GATES = 7, OUT_GRADIENT = 8, NEXT_H_GRADIENT = 9, NEXT_C_GRADIENT = 10 };
/* The gradients of IN to C have the numbers IN to C. */

/* The parts of a row of GATES, each of `size` numbers; bias, weight and recurrent have the first four. */
enum { INPUT = 0, FORGET = 1, CANDIDATE = 2, OUTPUT = 3, TANH_C = 4, WEIGHTED = 4, PARTS = 5 };

/* ---- the layer type */

static const tn_attribute size_attribute = {
    .size = sizeof(tn_attribute),
    .kind = TN_ATTR_INT,
    .name = "size",
    .doc = "outputs for each sample",
    .flags = TN_ATTR_REQUIRED,
    .has_range = 3,
    .minimum = 1,
    .maximum = 65536,
};
static const tn_attribute* const attributes[] = {&size_attribute};
static const tn_port in_port = {.size = sizeof(tn_port), .name = "in", .doc = "[samples, n]: one step"};
static const tn_port out_port = {.size = sizeof(tn_port), .name = "out", .doc = "[samples, size]"};
static const tn_port* const inputs[] = {&in_port};
static const tn_port* const outputs[] = {&out_port};
static const char* const parameters[] = {"weight", "recurrent", "bias"};
static const tn_layer_description description = {
    .size = sizeof(tn_layer_description),
    .role = TN_ROLE_LAYER,
    .type = "outside.lstm",
    .doc = "c = forget * c + input * candidate, out = output * tanh(c), gates of in and the out of the step before.",
    .inputs_count = 1,
    .outputs_count = 1,
    .inputs = inputs,
    .outputs = outputs,
    .attributes_count = 1,
    .parameters_count = 3,
    .attributes = attributes,
    .parameters = parameters,
    .state_version = 1,
};

static tn_status declare(const tn_planner* planner, const char* suffix, int64_t rows, int64_t columns, double range) {
  const tn_dim dims[2] = {tn_dim_constant(rows), tn_dim_constant(columns)};
  const tn_spec spec = {sizeof(tn_spec), TN_COMPUTE, TN_DENSE, 2, dims, 0, 0, NULL};
  const tn_parameter parameter = {.size = sizeof(tn_parameter),
                                  .suffix = suffix,
                                  .spec = &spec,
                                  .initializer = {TN_INIT_UNIFORM, 0, -range, range}};
  return planner->parameter(planner->self, &parameter) < 0 ? TN_INVALID : TN_OK;
}

static tn_status plan(const tn_planner* planner) {
  const tn_spec* in = planner->inputs[IN];
  const int64_t size = tn_int(planner->attributes, "size", 1);
  const double range = 1 / sqrt((double)size);
  tn_dim dims[2];
  tn_spec out = *in;
  if (in->storage != TN_DENSE || in->rank != 2 || in->dims[1].symbol != TN_SYMBOL_NONE)
    return tn_fail(planner->errors, TN_INVALID, "in", "must be [samples, n]");
  if (declare(planner, "weight", in->dims[1].offset, WEIGHTED * size, range) != TN_OK ||
      declare(planner, "recurrent", size, WEIGHTED * size, range) != TN_OK ||
      declare(planner, "bias", 1, WEIGHTED * size, range) != TN_OK)
    return TN_INVALID;
  dims[0] = in->dims[0];
  dims[1] = tn_dim_constant(size);
  out.size = sizeof(tn_spec);
  out.dims = dims;
  if (planner->carried(planner->self, &out) < 0 || planner->carried(planner->self, &out) < 0) return TN_INVALID;
  return planner->output(planner->self, OUT, &out);
}

static const tn_layer_type layer = {.size = sizeof(tn_layer_type), .description = &description, .plan = plan};

/* ---- the kernel */

typedef struct work {
  const tn_call* call;
  int64_t samples, n, size;
} work;

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double written(uint8_t request, double before, double value) {
  return request == TN_REQUEST_ADD ? before + value : value;
}

#define REAL float
#define NAME(name) name##_f32
#include "lstm.c"
#undef REAL
#undef NAME
#define REAL double
#define NAME(name) name##_f64
#include "lstm.c"

static work work_of(const tn_call* call) {
  const work w = {call, call->inputs[IN]->dl.shape[0], call->inputs[IN]->dl.shape[1],
                  call->inputs[RECURRENT]->dl.shape[0]};
  return w;
}

static tn_status forward(const tn_execution* execution, const tn_call* call, void (*sample)(void*, int64_t, int32_t)) {
  work w = work_of(call);
  execution->parallel->for_each(execution->parallel->self, w.samples, sample, &w);
  return TN_OK;
}
static tn_status run_forward_f32(void* self, const tn_execution* execution, const tn_call* call) {
  (void)self;
  return forward(execution, call, forward_f32);
}
static tn_status run_forward_f64(void* self, const tn_execution* execution, const tn_call* call) {
  (void)self;
  return forward(execution, call, forward_f64);
}

/* Phase 0 has a task for each sample; phase 1 one for each row of weight and recurrent, and one for bias. */
static tn_status backward(const tn_execution* execution, const tn_call* call,
                          void (*part)(void*, int32_t, int64_t, int32_t)) {
  work w = work_of(call);
  const int64_t sizes[2] = {w.samples, w.n + w.size + 1};
  execution->parallel->phases(execution->parallel->self, 2, sizes, part, &w);
  return TN_OK;
}
static tn_status run_backward_f32(void* self, const tn_execution* execution, const tn_call* call) {
  (void)self;
  return backward(execution, call, backward_f32);
}
static tn_status run_backward_f64(void* self, const tn_execution* execution, const tn_call* call) {
  (void)self;
  return backward(execution, call, backward_f64);
}

static tn_status supports(const tn_kernel_site* site, int32_t* score) {
  (void)score;
  return site->inputs[IN]->dtype == site->compute ? TN_OK : TN_UNSUPPORTED;
}

static tn_status query(const tn_kernel_site* site, tn_kernel_needs* needs) {
  const tn_dim dims[2] = {site->inputs[IN]->dims[0], tn_dim_constant(PARTS * site->outputs[OUT]->dims[1].offset)};
  const tn_spec gates = {sizeof(tn_spec), site->compute, TN_DENSE, 2, dims, 0, 0, NULL};
  for (int i = IN; i <= C; ++i) needs->reads_in[i] = i != BIAS;
  return needs->saved(needs->self, &gates) < 0 ? TN_INVALID : TN_OK;
}

static tn_status prepare(const tn_kernel_site* site, int32_t direction, tn_prepared* prepared) {
  const int wide = site->compute == TN_F64;
  const tn_spec* out = site->outputs[OUT];
  if (direction == TN_FORWARD) {
    prepared->run = wide ? run_forward_f64 : run_forward_f32;
    return TN_OK;
  }
  if (direction != TN_BACKWARD) return TN_UNSUPPORTED;
  /* The gradients of the gates before their functions: [samples, 4 * size]. */
  prepared->workspace_bytes =
      (uint64_t)out->dims[0].bound * (uint64_t)out->dims[1].offset * WEIGHTED * tn_dtype_bytes(site->compute);
  prepared->run = wide ? run_backward_f64 : run_backward_f32;
  return TN_OK;
}

static const tn_dtype dtypes[] = {TN_F32, TN_F64};
static const tn_kernel kernel = {
    .size = sizeof(tn_kernel),
    .score = 10,
    .type = "outside.lstm",
    .device = "cpu",
    .name = "outside_lstm",
    .dtypes_count = 2,
    .dtypes = dtypes,
    .supports = supports,
    .query = query,
    .prepare = prepare,
};

static const tn_layer_type* const layers[] = {&layer};
static const tn_kernel* const kernels[] = {&kernel};
static const tn_plugin plugin = {
    .size = sizeof(tn_plugin),
    .abi = {TN_ABI_MAJOR, TN_ABI_MINOR, TN_ABI_MINOR, 0},
    .id = "org.example.outside.lstm",
    .version = "1.0.0",
    .doc = "An LSTM cell by native kernels",
    .license = "Apache-2.0",
    .isa = "",
    .layers_count = 1,
    .kernels_count = 1,
    .layers = layers,
    .kernels = kernels,
};

const tn_plugin* tenon_plugin(void) { return &plugin; }

#else /* ---- the loops, for each REAL */

/* The values of an operand from row `row` of `width` numbers on; null for a null operand. */
static REAL* NAME(row)(const tn_tensor* of, int64_t row, int64_t width) {
  return of == NULL ? NULL : (REAL*)tn_data(of) + row * width;
}

static void NAME(forward)(void* argument, int64_t sample, int32_t worker) {
  const work* w = (const work*)argument;
  const tn_call* call = w->call;
  const REAL* x = NAME(row)(call->inputs[IN], sample, w->n);
  const REAL* h = NAME(row)(call->inputs[H], sample, w->size);
  const REAL* c = NAME(row)(call->inputs[C], sample, w->size);
  REAL* const to[] = {NAME(row)(call->outputs[OUT], sample, w->size), NAME(row)(call->outputs[NEXT_H], sample, w->size),
                      NAME(row)(call->outputs[NEXT_C], sample, w->size)};
  REAL* const gates = NAME(row)(call->outputs[GATES], sample, PARTS * w->size); /* null if it does not train */
  (void)worker;
  for (int64_t j = 0; j < w->size; ++j) {
    double gate[PARTS], value[3];
    for (int part = 0; part < WEIGHTED; ++part) {
      const int64_t column = part * w->size + j;
      double sum = NAME(row)(call->inputs[BIAS], 0, 0)[column];
      for (int64_t k = 0; k < w->n; ++k)
        sum += (double)x[k] * NAME(row)(call->inputs[WEIGHT], k, WEIGHTED * w->size)[column];
      for (int64_t k = 0; k < w->size; ++k)
        sum += (double)h[k] * NAME(row)(call->inputs[RECURRENT], k, WEIGHTED * w->size)[column];
      gate[part] = part == CANDIDATE ? tanh(sum) : sigmoid(sum);
    }
    value[NEXT_C] = gate[FORGET] * c[j] + gate[INPUT] * gate[CANDIDATE];
    gate[TANH_C] = tanh(value[NEXT_C]);
    value[OUT] = value[NEXT_H] = gate[OUTPUT] * gate[TANH_C];
    for (int i = OUT; i <= NEXT_C; ++i)
      if (to[i] != NULL) to[i][j] = (REAL)written(call->requests[i], to[i][j], value[i]);
    for (int part = 0; gates != NULL && part < PARTS; ++part) gates[part * w->size + j] = (REAL)gate[part];
  }
}

/* Writes the gradients of the gates of a sample, before their functions, to the workspace, and that of its cell. */
static void NAME(gate_gradients)(const work* w, int64_t sample) {
  const tn_call* call = w->call;
  const int64_t size = w->size;
  const REAL* gates = NAME(row)(call->inputs[BACK_GATES], sample, PARTS * size);
  const REAL* c = NAME(row)(call->inputs[C], sample, size);
  const REAL* dout = NAME(row)(call->inputs[OUT_GRADIENT], sample, size);
  const REAL* dnext_h = NAME(row)(call->inputs[NEXT_H_GRADIENT], sample, size);
  const REAL* dnext_c = NAME(row)(call->inputs[NEXT_C_GRADIENT], sample, size);
  REAL* const dc = NAME(row)(call->outputs[C], sample, size);
  REAL* const to = (REAL*)call->workspace + sample * WEIGHTED * size;
  for (int64_t j = 0; j < size; ++j) {
    const double in = gates[INPUT * size + j], forget = gates[FORGET * size + j], out = gates[OUTPUT * size + j];
    const double candidate = gates[CANDIDATE * size + j], cell = gates[TANH_C * size + j];
    const double dh = (dout == NULL ? 0 : dout[j]) + (dnext_h == NULL ? 0 : dnext_h[j]);
    const double dcell = (dnext_c == NULL ? 0 : dnext_c[j]) + dh * out * (1 - cell * cell);
    to[INPUT * size + j] = (REAL)(dcell * candidate * in * (1 - in));
    to[FORGET * size + j] = (REAL)(dcell * c[j] * forget * (1 - forget));
    to[CANDIDATE * size + j] = (REAL)(dcell * in * (1 - candidate * candidate));
    to[OUTPUT * size + j] = (REAL)(dh * cell * out * (1 - out));
    if (dc != NULL) dc[j] = (REAL)written(call->requests[C], dc[j], dcell * forget);
  }
}

/* Row `sample` of the gradient of operand `to`, of `count` numbers: the rows of a parameter times the gradients of the
 * gates. */
static void NAME(products)(const work* w, int64_t sample, uint32_t parameter, uint32_t to, int64_t count) {
  const int64_t width = WEIGHTED * w->size;
  const REAL* gradients = (const REAL*)w->call->workspace + sample * width;
  REAL* const row = NAME(row)(w->call->outputs[to], sample, count);
  for (int64_t k = 0; row != NULL && k < count; ++k) {
    const REAL* factors = NAME(row)(w->call->inputs[parameter], k, width);
    double sum = 0;
    for (int64_t j = 0; j < width; ++j) sum += (double)factors[j] * gradients[j];
    row[k] = (REAL)written(w->call->requests[to], row[k], sum);
  }
}

/* Row k of the gradient of `parameter`: the sum of the gradients of the gates, times column k of `factor` or 1. */
static void NAME(sums)(const work* w, uint32_t parameter, int64_t k, const tn_tensor* factor, int64_t factor_width) {
  const int64_t width = WEIGHTED * w->size;
  const REAL* gradients = (const REAL*)w->call->workspace;
  REAL* const to = NAME(row)(w->call->outputs[parameter], k, width);
  for (int64_t j = 0; to != NULL && j < width; ++j) {
    double sum = 0;
    for (int64_t i = 0; i < w->samples; ++i)
      sum += (factor == NULL ? 1 : (double)NAME(row)(factor, i, factor_width)[k]) * gradients[i * width + j];
    to[j] = (REAL)written(w->call->requests[parameter], to[j], sum);
  }
}

static void NAME(backward)(void* argument, int32_t phase, int64_t index, int32_t worker) {
  const work* w = (const work*)argument;
  (void)worker;
  if (phase == 0) {
    NAME(gate_gradients)(w, index);
    NAME(products)(w, index, WEIGHT, IN, w->n);
    NAME(products)(w, index, RECURRENT, H, w->size);
  } else if (index < w->n) {
    NAME(sums)(w, WEIGHT, index, w->call->inputs[IN], w->n);
  } else if (index < w->n + w->size) {
    NAME(sums)(w, RECURRENT, index - w->n, w->call->inputs[H], w->size);
  } else {
    NAME(sums)(w, BIAS, 0, NULL, 0);
  }
}

#endif

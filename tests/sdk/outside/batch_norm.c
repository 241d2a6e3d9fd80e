/* A plugin in C from outside of Tenon: batch normalisation of [samples, channels] by native kernels, after S. Ioffe,
 * C. Szegedy, "Batch normalization: accelerating deep network training by reducing internal covariate shift", 2015.
 * In training it normalises by mean and variance of the minibatch and moves two buffers towards them; a machine that
 * only answers normalises by the buffers. The file includes itself once for each element type.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef REAL
#include <math.h>
#include <stdlib.h>
#include <tenon/plugin.h>

/* Operands of a forward call. */
enum { IN = 0, SCALE = 1, SHIFT = 2, MEAN = 3, VARIANCE = 4 };
enum { OUT = 0, NEXT_MEAN = 1, NEXT_VARIANCE = 2, SAVED_MEAN = 3, SAVED_INVERSE = 4 };
/* Operands of a backward call: inputs in, scale, shift, mean, variance, out, the saved ones, gradient of out. */
enum { BACK_MEAN = 6, BACK_INVERSE = 7, OUT_GRADIENT = 8 };
enum { IN_GRADIENT = 0, SCALE_GRADIENT = 1, SHIFT_GRADIENT = 2 };

/* ---- the layer type */

static const tn_attribute momentum = {
    .size = sizeof(tn_attribute),
    .kind = TN_ATTR_FLOAT,
    .name = "momentum",
    .doc = "share of the moving statistics that a minibatch leaves",
    .has_range = 3,
    .initial = {.kind = TN_ATTR_FLOAT, .count = 1, .as = {.f = 0.9}},
    .minimum = 0,
    .maximum = 1,
};
static const tn_attribute epsilon = {
    .size = sizeof(tn_attribute),
    .kind = TN_ATTR_FLOAT,
    .name = "epsilon",
    .doc = "added to the variance",
    .has_range = 1,
    .initial = {.kind = TN_ATTR_FLOAT, .count = 1, .as = {.f = 1e-5}},
    .minimum = 0,
};
static const tn_attribute* const attributes[] = {&momentum, &epsilon};
static const tn_port in_port = {.size = sizeof(tn_port), .name = "in", .doc = "[samples, channels]"};
static const tn_port out_port = {.size = sizeof(tn_port), .name = "out", .doc = "[samples, channels]"};
static const tn_port* const inputs[] = {&in_port};
static const tn_port* const outputs[] = {&out_port};
static const char* const parameters[] = {"scale", "shift", "moving_mean", "moving_variance"};
static const tn_layer_description description = {
    .size = sizeof(tn_layer_description),
    .role = TN_ROLE_LAYER,
    .type = "outside.batch_norm",
    .doc = "out = scale * (in - mean) / sqrt(variance + epsilon) + shift, of each channel over the samples.",
    .inputs_count = 1,
    .outputs_count = 1,
    .inputs = inputs,
    .outputs = outputs,
    .attributes_count = 2,
    .parameters_count = 4,
    .attributes = attributes,
    .parameters = parameters,
    .state_version = 1,
};

static tn_status plan(const tn_planner* planner) {
  const tn_spec* in = planner->inputs[IN];
  tn_spec row = {.size = sizeof(tn_spec), .dtype = TN_COMPUTE, .storage = TN_DENSE, .rank = 1};
  tn_parameter each = {.size = sizeof(tn_parameter), .spec = &row, .initializer = {.kind = TN_INIT_CONSTANT}};
  if (in->storage != TN_DENSE || in->rank != 2 || in->dims[1].symbol != TN_SYMBOL_NONE)
    return tn_fail(planner->errors, TN_INVALID, "in", "must be [samples, channels]");
  row.dims = in->dims + 1;
  for (uint32_t i = 0; i < 4; ++i) {
    each.suffix = parameters[i];
    each.initializer.a = i == 0 || i == 3 ? 1 : 0;
    each.merge = i < 2 ? 0 : TN_MERGE_MEAN;
    if ((i < 2 ? planner->parameter : planner->buffer)(planner->self, &each) < 0) return TN_INVALID;
  }
  return planner->output(planner->self, OUT, in);
}

static const tn_layer_type layer = {.size = sizeof(tn_layer_type), .description = &description, .plan = plan};

/* ---- the kernel: a task for each channel */

typedef struct binding {
  double momentum, epsilon;
  int training;
} binding;
typedef struct work {
  const binding* self;
  const tn_call* call;
  int64_t samples, channels;
} work;

static double written(uint8_t request, double before, double value) {
  return request == TN_REQUEST_ADD ? before + value : value;
}

#define REAL float
#define NAME(name) name##_f32
#include "batch_norm.c"
#undef REAL
#undef NAME
#define REAL double
#define NAME(name) name##_f64
#include "batch_norm.c"

static tn_status run(void* self, const tn_execution* execution, const tn_call* call,
                     void (*channel)(void*, int64_t, int32_t)) {
  const tn_parallel* parallel = execution->parallel;
  const DLTensor* in = &call->inputs[IN]->dl;
  work w = {(const binding*)self, call, in->shape[0], in->shape[1]};
  parallel->for_each(parallel->self, w.channels, channel, &w);
  return TN_OK;
}
static tn_status run_forward_f32(void* self, const tn_execution* execution, const tn_call* call) {
  return run(self, execution, call, forward_f32);
}
static tn_status run_forward_f64(void* self, const tn_execution* execution, const tn_call* call) {
  return run(self, execution, call, forward_f64);
}
static tn_status run_backward_f32(void* self, const tn_execution* execution, const tn_call* call) {
  return run(self, execution, call, backward_f32);
}
static tn_status run_backward_f64(void* self, const tn_execution* execution, const tn_call* call) {
  return run(self, execution, call, backward_f64);
}

static tn_status supports(const tn_kernel_site* site, int32_t* score) {
  (void)score;
  return site->inputs[IN]->dtype == site->compute ? TN_OK : TN_UNSUPPORTED;
}

static tn_status query(const tn_kernel_site* site, tn_kernel_needs* needs) {
  const tn_spec row = {sizeof(tn_spec), site->compute, TN_DENSE, 1, site->inputs[IN]->dims + 1, 0, 0, NULL};
  needs->reads_in[IN] = 1;
  needs->reads_in[SCALE] = 1;
  return needs->saved(needs->self, &row) < 0 || needs->saved(needs->self, &row) < 0 ? TN_INVALID : TN_OK;
}

static tn_status prepare(const tn_kernel_site* site, int32_t direction, tn_prepared* prepared) {
  const int wide = site->compute == TN_F64;
  binding* made;
  if (direction != TN_FORWARD && direction != TN_BACKWARD) return TN_UNSUPPORTED;
  made = (binding*)malloc(sizeof(binding));
  if (made == NULL) return tn_fail(site->errors, TN_OUT_OF_MEMORY, NULL, "no memory for a binding");
  made->momentum = tn_float(site->attributes, "momentum", 0);
  made->epsilon = tn_float(site->attributes, "epsilon", 0);
  made->training = site->training != 0;
  prepared->binding = made;
  prepared->destroy = free;
  if (direction == TN_FORWARD)
    prepared->run = wide ? run_forward_f64 : run_forward_f32;
  else
    prepared->run = wide ? run_backward_f64 : run_backward_f32;
  return TN_OK;
}

static const tn_dtype dtypes[] = {TN_F32, TN_F64};
static const tn_kernel kernel = {
    .size = sizeof(tn_kernel),
    .score = 10,
    .type = "outside.batch_norm",
    .device = "cpu",
    .name = "outside_batch_norm",
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
    .id = "org.example.outside.batch_norm",
    .version = "1.0.0",
    .doc = "Batch normalisation by native kernels",
    .license = "Apache-2.0",
    .isa = "",
    .layers_count = 1,
    .kernels_count = 1,
    .layers = layers,
    .kernels = kernels,
};

const tn_plugin* tenon_plugin(void) { return &plugin; }

#else /* ---- the loops, for each REAL; element [i, channel] is number i * channels */

/* Returns the mean of a channel, and writes its variance; sums over the samples are in double precision. */
static double NAME(statistics)(const work* w, const REAL* x, double* variance) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < w->samples; ++i) sum += x[i * w->channels];
  for (int64_t i = 0; i < w->samples; ++i) {
    const double from_mean = x[i * w->channels] - sum / (double)w->samples;
    squares += from_mean * from_mean;
  }
  *variance = squares / (double)w->samples;
  return sum / (double)w->samples;
}

static void NAME(forward)(void* argument, int64_t channel, int32_t worker) {
  const work* w = (const work*)argument;
  const tn_call* call = w->call;
  const REAL* x = (const REAL*)tn_data(call->inputs[IN]) + channel;
  REAL* const out = (REAL*)tn_data(call->outputs[OUT]) + channel;
  const double scale = ((const REAL*)tn_data(call->inputs[SCALE]))[channel];
  const double shift = ((const REAL*)tn_data(call->inputs[SHIFT]))[channel];
  const double moving[2] = {((const REAL*)tn_data(call->inputs[MEAN]))[channel],
                            ((const REAL*)tn_data(call->inputs[VARIANCE]))[channel]};
  double mean = moving[0], variance = moving[1], inverse, results[5];
  (void)worker;
  if (w->self->training && w->samples > 0) mean = NAME(statistics)(w, x, &variance);
  inverse = 1 / sqrt(variance + w->self->epsilon);
  for (int64_t i = 0; i < w->samples * w->channels; i += w->channels)
    out[i] = (REAL)written(call->requests[OUT], out[i], scale * (x[i] - mean) * inverse + shift);
  results[NEXT_MEAN] = w->self->momentum * moving[0] + (1 - w->self->momentum) * mean;
  results[NEXT_VARIANCE] = w->self->momentum * moving[1] + (1 - w->self->momentum) * variance;
  results[SAVED_MEAN] = mean;
  results[SAVED_INVERSE] = inverse;
  for (uint32_t i = NEXT_MEAN; i < call->outputs_count; ++i) { /* null in a machine that does not train */
    REAL* to = (REAL*)tn_data(call->outputs[i]);
    if (to != NULL) to[channel] = (REAL)written(call->requests[i], to[channel], results[i]);
  }
}

/* With n = (in - mean) / sqrt(variance + epsilon): din is scale / sqrt(variance + epsilon) times
 * dout - mean(dout) - n * mean(dout * n). */
static void NAME(backward)(void* argument, int64_t channel, int32_t worker) {
  const work* w = (const work*)argument;
  const tn_call* call = w->call;
  const REAL* x = (const REAL*)tn_data(call->inputs[IN]) + channel;
  const REAL* dout = (const REAL*)tn_data(call->inputs[OUT_GRADIENT]) + channel;
  REAL* const din = (REAL*)tn_data(call->outputs[IN_GRADIENT]);
  REAL* const dscale = (REAL*)tn_data(call->outputs[SCALE_GRADIENT]);
  REAL* const dshift = (REAL*)tn_data(call->outputs[SHIFT_GRADIENT]);
  const double scale = ((const REAL*)tn_data(call->inputs[SCALE]))[channel];
  const double mean = ((const REAL*)tn_data(call->inputs[BACK_MEAN]))[channel];
  const double inverse = ((const REAL*)tn_data(call->inputs[BACK_INVERSE]))[channel];
  const double samples = (double)w->samples;
  double sum = 0, product = 0;
  (void)worker;
  for (int64_t i = 0; i < w->samples * w->channels; i += w->channels) {
    sum += dout[i];
    product += dout[i] * (x[i] - mean) * inverse;
  }
  for (int64_t i = 0; din != NULL && i < w->samples * w->channels; i += w->channels) {
    const double normal = (x[i] - mean) * inverse;
    const double gradient = scale * inverse * (dout[i] - sum / samples - normal * product / samples);
    din[channel + i] = (REAL)written(call->requests[IN_GRADIENT], din[channel + i], gradient);
  }
  if (dscale != NULL) dscale[channel] = (REAL)written(call->requests[SCALE_GRADIENT], dscale[channel], product);
  if (dshift != NULL) dshift[channel] = (REAL)written(call->requests[SHIFT_GRADIENT], dshift[channel], sum);
}

#endif

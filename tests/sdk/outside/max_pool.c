/* A plugin in C from outside of Tenon: the maximum over windows of images, [samples, height * width * channels] or
 * [samples, height, width, channels], by native kernels. Forward saves the place of each maximum for backward, so
 * backward needs neither the input nor the output. The file includes itself once for each element type.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef REAL
#include <stdlib.h>
#include <string.h>
#include <tenon/plugin.h>

/* Operands. Forward: in; out, places. Backward: in, out, places, gradient of out; gradient of in. */
enum { IN = 0, OUT = 0, PLACES = 1, BACK_PLACES = 2, OUT_GRADIENT = 3, IN_GRADIENT = 0 };

/* ---- the layer type */

#define SIZE(attribute, text)                                                      \
  static const tn_attribute attribute##_attribute = {.size = sizeof(tn_attribute), \
                                                     .kind = TN_ATTR_INT,          \
                                                     .name = #attribute,           \
                                                     .doc = text,                  \
                                                     .flags = TN_ATTR_REQUIRED,    \
                                                     .has_range = 3,               \
                                                     .minimum = 1,                 \
                                                     .maximum = 1024}
SIZE(height, "rows of an image");
SIZE(width, "columns of an image");
SIZE(channels, "numbers of each pixel");
SIZE(window, "rows and columns of a window");
SIZE(stride, "rows and columns from one window to the next");
static const tn_attribute* const attributes[] = {&height_attribute, &width_attribute, &channels_attribute,
                                                 &window_attribute, &stride_attribute};
static const tn_port in_port = {
    .size = sizeof(tn_port), .name = "in", .doc = "[samples, height * width * channels] or four dimensions"};
static const tn_port out_port = {
    .size = sizeof(tn_port), .name = "out", .doc = "the windows of each sample, in the dimensions of in"};
static const tn_port* const inputs[] = {&in_port};
static const tn_port* const outputs[] = {&out_port};
static const tn_layer_description description = {
    .size = sizeof(tn_layer_description),
    .role = TN_ROLE_LAYER,
    .type = "outside.max_pool",
    .doc = "The maximum of each channel over each window, of the windows that lie inside the image.",
    .inputs_count = 1,
    .outputs_count = 1,
    .inputs = inputs,
    .outputs = outputs,
    .attributes_count = 5,
    .attributes = attributes,
    .state_version = 1,
};

/* The images of a site; rows and columns count the windows. */
typedef struct geometry {
  int64_t height, width, channels, window, stride, rows, columns;
} geometry;

static geometry geometry_of(const tn_attributes* of) {
  geometry g = {tn_int(of, "height", 1),
                tn_int(of, "width", 1),
                tn_int(of, "channels", 1),
                tn_int(of, "window", 1),
                tn_int(of, "stride", 1),
                0,
                0};
  g.rows = g.height < g.window ? 0 : (g.height - g.window) / g.stride + 1;
  g.columns = g.width < g.window ? 0 : (g.width - g.window) / g.stride + 1;
  return g;
}

static int is_constant(const tn_dim* dim, int64_t value) {
  return dim->symbol == TN_SYMBOL_NONE && dim->offset == value;
}

static tn_status plan(const tn_planner* planner) {
  const tn_spec* in = planner->inputs[IN];
  const geometry g = geometry_of(planner->attributes);
  tn_dim dims[4];
  tn_spec out = *in;
  const int flat = in->rank == 2 && is_constant(&in->dims[1], g.height * g.width * g.channels);
  const int image = in->rank == 4 && is_constant(&in->dims[1], g.height) && is_constant(&in->dims[2], g.width) &&
                    is_constant(&in->dims[3], g.channels);
  if (in->storage != TN_DENSE || !(flat || image))
    return tn_fail(planner->errors, TN_INVALID, "in", "must be [samples, height * width * channels] or 4 dimensions");
  if (g.rows == 0 || g.columns == 0)
    return tn_fail(planner->errors, TN_INVALID, "window", "must not exceed height and width");
  dims[0] = in->dims[0];
  dims[1] = tn_dim_constant(flat ? g.rows * g.columns * g.channels : g.rows);
  dims[2] = tn_dim_constant(g.columns);
  dims[3] = tn_dim_constant(g.channels);
  out.size = sizeof(tn_spec);
  out.dims = dims;
  return planner->output(planner->self, OUT, &out);
}

static const tn_layer_type layer = {.size = sizeof(tn_layer_type), .description = &description, .plan = plan};

/* ---- the kernel: a task for each sample; a place is the index of an element within its sample */

typedef struct work {
  const geometry* g;
  const tn_call* call;
} work;

#define REAL float
#define NAME(name) name##_f32
#include "max_pool.c"
#undef REAL
#undef NAME
#define REAL double
#define NAME(name) name##_f64
#include "max_pool.c"

static tn_status run(void* self, const tn_execution* execution, const tn_call* call,
                     void (*sample)(void*, int64_t, int32_t)) {
  const tn_parallel* parallel = execution->parallel;
  work w = {(const geometry*)self, call};
  parallel->for_each(parallel->self, call->outputs[0]->dl.shape[0], sample, &w);
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
  tn_spec places = *site->outputs[OUT];
  places.size = sizeof(tn_spec);
  places.dtype = TN_I32;
  return needs->saved(needs->self, &places) < 0 ? TN_INVALID : TN_OK;
}

static tn_status prepare(const tn_kernel_site* site, int32_t direction, tn_prepared* prepared) {
  const int wide = site->compute == TN_F64;
  geometry* made;
  if (direction != TN_FORWARD && direction != TN_BACKWARD) return TN_UNSUPPORTED;
  made = (geometry*)malloc(sizeof(geometry));
  if (made == NULL) return tn_fail(site->errors, TN_OUT_OF_MEMORY, NULL, "no memory for a binding");
  *made = geometry_of(site->attributes);
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
    .type = "outside.max_pool",
    .device = "cpu",
    .name = "outside_max_pool",
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
    .id = "org.example.outside.max_pool",
    .version = "1.0.0",
    .doc = "Maxima over windows by native kernels",
    .license = "Apache-2.0",
    .isa = "",
    .layers_count = 1,
    .kernels_count = 1,
    .layers = layers,
    .kernels = kernels,
};

const tn_plugin* tenon_plugin(void) { return &plugin; }

#else /* ---- the loops, for each REAL */

static void NAME(forward)(void* argument, int64_t sample, int32_t worker) {
  const work* w = (const work*)argument;
  const geometry* g = w->g;
  const tn_call* call = w->call;
  const int64_t count = g->rows * g->columns * g->channels;
  const REAL* in = (const REAL*)tn_data(call->inputs[IN]) + sample * g->height * g->width * g->channels;
  REAL* const out = (REAL*)tn_data(call->outputs[OUT]) + sample * count;
  int32_t* const places = (int32_t*)tn_data(call->outputs[PLACES]); /* null in a machine that does not train */
  (void)worker;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = i / g->channels / g->columns * g->stride, column = i / g->channels % g->columns * g->stride;
    const int64_t corner = (row * g->width + column) * g->channels + i % g->channels;
    int64_t best = corner;
    for (int64_t k = 0; k < g->window * g->window; ++k) {
      const int64_t at = corner + (k / g->window * g->width + k % g->window) * g->channels;
      if (in[at] > in[best]) best = at;
    }
    out[i] = in[best] + (call->requests[OUT] == TN_REQUEST_ADD ? out[i] : 0);
    if (places != NULL) places[sample * count + i] = (int32_t)best;
  }
}

/* Windows may overlap: a place gets the sum of their gradients. */
static void NAME(backward)(void* argument, int64_t sample, int32_t worker) {
  const work* w = (const work*)argument;
  const tn_call* call = w->call;
  const int64_t size = w->g->height * w->g->width * w->g->channels;
  const int64_t count = w->g->rows * w->g->columns * w->g->channels;
  const int32_t* places = (const int32_t*)tn_data(call->inputs[BACK_PLACES]) + sample * count;
  const REAL* dout = (const REAL*)tn_data(call->inputs[OUT_GRADIENT]) + sample * count;
  REAL* const din = (REAL*)tn_data(call->outputs[IN_GRADIENT]) + sample * size;
  (void)worker;
  if (call->requests[IN_GRADIENT] == TN_REQUEST_WRITE) memset(din, 0, (size_t)size * sizeof(REAL));
  for (int64_t i = 0; i < count; ++i) din[places[i]] += dout[i];
}

#endif

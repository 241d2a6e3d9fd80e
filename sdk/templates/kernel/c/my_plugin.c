/* A layer with native kernels: exponential smoothing along the last dimension,
 *   out[j] = decay * out[j - 1] + (1 - decay) * in[j],  with out[-1] = 0,
 * which no recorded program can express, since each element needs the one before it. SPDX-License-Identifier: MIT */
#define TN_TARGET_MINOR 2 /* runs on hosts from 0.2 on; what is newer does not compile */

#include <tenon/plugin.h>

TN_RESERVE_NOTE(4096); /* room for the manifest, if the plugin is built without CMake */

/* The declarations. */
static const tn_attribute decay = {
    .size = sizeof(tn_attribute),
    .kind = TN_ATTR_FLOAT,
    .name = "decay",
    .doc = "share of the element before",
    .has_range = 3,
    .initial = {.kind = TN_ATTR_FLOAT, .count = 1, .as = {.f = 0.5}},
    .minimum = 0,
    .maximum = 1,
};
static const tn_port in_port = {.size = sizeof(tn_port), .name = "in", .doc = "[samples, ..., elements]"};
static const tn_port out_port = {.size = sizeof(tn_port), .name = "out", .doc = "as in"};
static const tn_attribute* const attributes[] = {&decay};
static const tn_port* const inputs[] = {&in_port};
static const tn_port* const outputs[] = {&out_port};
static const tn_layer_description description = {
    .size = sizeof(tn_layer_description),
    .role = TN_ROLE_LAYER,
    .type = "example.my_plugin",
    .doc = "Exponential smoothing: out[j] = decay * out[j - 1] + (1 - decay) * in[j] along the last dimension",
    .inputs_count = 1,
    .outputs_count = 1,
    .inputs = inputs,
    .outputs = outputs,
    .attributes_count = 1,
    .attributes = attributes,
    .state_version = 1,
};

static tn_status plan(const tn_planner* planner) {
  tn_spec out = *planner->inputs[0];
  if (out.rank < 2 || out.dims[out.rank - 1].symbol != TN_SYMBOL_NONE)
    return tn_fail(planner->errors, TN_INVALID, "in", "must be [samples, ..., elements]");
  out.size = sizeof out;
  out.dtype = TN_COMPUTE;
  return planner->output(planner->self, 0, &out);
}

static const tn_layer_type layer = {.size = sizeof(tn_layer_type), .description = &description, .plan = plan};

/* A prepared call, allocated by the host's memory service. */
typedef struct binding {
  double decay;
  int backward;
  const tn_memory* memory;
} binding;

/* One row, for each element type. Backward, from the end: the gradient of out[j] reaches in[j] and all before it. */
#define DEFINE_ROW(name, type)                                                          \
  static void name(const binding* of, const type from[], type to[], int64_t n) {        \
    const type keep = (type)of->decay, take = (type)(1 - of->decay);                    \
    type sum = 0;                                                                       \
    if (of->backward) {                                                                 \
      for (int64_t j = n - 1; j >= 0; --j) to[j] = take * (sum = from[j] + keep * sum); \
    } else {                                                                            \
      for (int64_t j = 0; j < n; ++j) to[j] = sum = keep * sum + take * from[j];        \
    }                                                                                   \
  }
DEFINE_ROW(row_f32, float)
DEFINE_ROW(row_f64, double)

/* The rows of a call, of which each task of the host's threads computes one. */
typedef struct rows {
  const binding* of;
  const tn_tensor* from;
  tn_tensor* to;
  int64_t columns;
} rows;

static void compute_row(void* argument, int64_t row, int32_t worker) {
  const rows* it = (const rows*)argument;
  const uint8_t* from = tn_data(it->from);
  uint8_t* to = tn_data(it->to);
  const int64_t first = row * it->columns;
  (void)worker;
  if (it->to->dl.dtype.bits == 64)
    row_f64(it->of, (const double*)from + first, (double*)to + first, it->columns);
  else
    row_f32(it->of, (const float*)from + first, (float*)to + first, it->columns);
}

/* Forward: inputs in; outputs out. Backward: inputs in and out, both null here, gradient of out; outputs gradient of
 * in.
 */
static tn_status run(void* self, const tn_execution* execution, const tn_call* call) {
  const binding* of = (const binding*)self;
  rows all = {of, call->inputs[of->backward ? 2 : 0], call->outputs[0], 0};
  if (call->requests[0] == TN_REQUEST_NONE) return TN_OK;
  all.columns = all.to->dl.shape[all.to->dl.ndim - 1];
  if (all.columns > 0)
    execution->parallel->for_each(execution->parallel->self, tn_elements(all.to) / all.columns, compute_row, &all);
  return TN_OK;
}

static void destroy(void* self) {
  const tn_memory* memory = ((binding*)self)->memory;
  memory->release(memory->self, self, sizeof(binding));
}

/* A kernel may change its score for a site. */
static tn_status supports(const tn_kernel_site* site, int32_t* score) { /* NOLINT(readability-non-const-parameter) */
  const tn_spec* in = site->inputs[0];
  (void)score;
  if (in->dtype == site->compute) return TN_OK;
  return tn_fail(site->errors, TN_UNSUPPORTED, "in", "must have the float type of the machine");
}

static tn_status query(const tn_kernel_site* site, tn_kernel_needs* needs) {
  (void)site, (void)needs; /* backward reads neither in nor out */
  return TN_OK;
}

static tn_status prepare(const tn_kernel_site* site, int32_t direction, tn_prepared* prepared) {
  const tn_memory* memory = (const tn_memory*)site->services->extension(site->services->self, TN_MEMORY);
  binding* made;
  if (direction != TN_FORWARD && direction != TN_BACKWARD) return TN_UNSUPPORTED;
  if (memory == NULL) return tn_fail(site->errors, TN_UNSUPPORTED, NULL, "needs the service " TN_MEMORY);
  made = (binding*)memory->allocate(memory->self, sizeof(binding));
  if (made == NULL) return tn_fail(site->errors, TN_OUT_OF_MEMORY, NULL, "no memory for a binding");
  made->decay = tn_float(site->attributes, "decay", 0.5);
  made->backward = direction == TN_BACKWARD;
  made->memory = memory;
  prepared->binding = made;
  prepared->run = run;
  prepared->destroy = destroy;
  return TN_OK;
}

static const tn_dtype dtypes[] = {TN_F32, TN_F64};
static const tn_kernel kernel = {
    .size = sizeof(tn_kernel),
    .score = 10,
    .type = "example.my_plugin",
    .device = "cpu",
    .name = "my_plugin",
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
    .abi = {TN_ABI_MAJOR, TN_ABI_MINOR, TN_TARGET_MINOR, 0},
    .id = "example.my_plugin",
    .version = "0.1.0",
    .doc = "Exponential smoothing",
    .license = "MIT",
    .isa = "",
    .layers_count = 1,
    .kernels_count = 1,
    .layers = layers,
    .kernels = kernels,
};

const tn_plugin* tenon_plugin(void) { return &plugin; }

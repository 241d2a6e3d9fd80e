/* A layer from outside of Tenon in C: out = factor * in. It has no body; a native kernel of the device "cpu" computes
 * it and its gradient. SPDX-License-Identifier: MIT */
#include <tenon/plugin.h>

enum { IN = 0, OUT = 0 };  /* ports */
enum { OUT_GRADIENT = 2 }; /* of a backward call: inputs in, out, gradient of out; outputs: gradient of in */

static const tn_attribute factor = {
    .size = sizeof(tn_attribute),
    .kind = TN_ATTR_FLOAT,
    .name = "factor",
    .doc = "what the input is multiplied by",
    .initial = {.kind = TN_ATTR_FLOAT, .count = 1, .as = {.f = 2.0}},
};
static const tn_port in_port = {.size = sizeof(tn_port), .name = "in", .doc = "any shape"};
static const tn_port out_port = {.size = sizeof(tn_port), .name = "out", .doc = "factor * in, of the same shape"};

static const tn_attribute* const attributes[] = {&factor};
static const tn_port* const inputs[] = {&in_port};
static const tn_port* const outputs[] = {&out_port};
static const tn_layer_description description = {
    .size = sizeof(tn_layer_description),
    .role = TN_ROLE_LAYER,
    .type = "example.scale",
    .doc = "out = factor * in.",
    .inputs_count = 1,
    .outputs_count = 1,
    .inputs = inputs,
    .outputs = outputs,
    .attributes_count = 1,
    .attributes = attributes,
    .state_version = 1,
};

static int is_float(tn_dtype dtype) { return dtype == TN_COMPUTE || dtype == TN_F32 || dtype == TN_F64; }

static tn_status plan(const tn_planner* planner) {
  const tn_spec* in = planner->inputs[IN];
  if (!is_float(in->dtype)) return tn_fail(planner->errors, TN_INVALID, "in", "must hold float32 or float64");
  if (in->storage != TN_DENSE) return tn_fail(planner->errors, TN_INVALID, "in", "must be dense");
  return planner->output(planner->self, OUT, in);
}

static const tn_layer_type layer = {.size = sizeof(tn_layer_type), .description = &description, .plan = plan};

/* The state of a prepared call, allocated by the host's memory service. */
typedef struct binding {
  double factor;
  const tn_memory* memory;
} binding;

/* Writes or adds by * from to `to`, in the element type. */
static tn_status scale(const tn_execution* execution, double by, const tn_tensor* from, tn_tensor* to,
                       uint8_t request) {
  int64_t count = 1;
  if (request == TN_REQUEST_NONE) return TN_OK;
  for (int32_t i = 0; i < to->dl.ndim; ++i) count *= to->dl.shape[i];
  if (to->dl.dtype.bits != from->dl.dtype.bits)
    return tn_fail(execution->errors, TN_INTERNAL, "in", "operands of two element types");
  if (to->dl.dtype.bits == 64) {
    const double* x = (const double*)from->dl.data;
    double* y = (double*)to->dl.data;
    for (int64_t i = 0; i < count; ++i) y[i] = by * x[i] + (request == TN_REQUEST_ADD ? y[i] : 0.0);
  } else {
    const float* x = (const float*)from->dl.data;
    float* y = (float*)to->dl.data;
    for (int64_t i = 0; i < count; ++i) y[i] = (float)by * x[i] + (request == TN_REQUEST_ADD ? y[i] : 0.0f);
  }
  return TN_OK;
}

static tn_status run_forward(void* self, const tn_execution* execution, const tn_call* call) {
  return scale(execution, ((binding*)self)->factor, call->inputs[IN], call->outputs[OUT], call->requests[OUT]);
}

static tn_status run_backward(void* self, const tn_execution* execution, const tn_call* call) {
  return scale(execution, ((binding*)self)->factor, call->inputs[OUT_GRADIENT], call->outputs[IN], call->requests[IN]);
}

static void destroy(void* self) {
  const tn_memory* memory = ((binding*)self)->memory;
  memory->release(memory->self, self, sizeof(binding));
}

static tn_status supports(const tn_kernel_site* site, int32_t* score) {
  (void)score;
  const tn_spec* in = site->inputs[IN];
  return in->storage == TN_DENSE && in->layout == 0 && (in->dtype == site->compute || in->dtype == TN_COMPUTE)
             ? TN_OK
             : TN_UNSUPPORTED;
}

static tn_status query(const tn_kernel_site* site, tn_kernel_needs* needs) {
  (void)site, (void)needs; /* backward reads nothing: the derivative is the factor alone */
  return TN_OK;
}

static tn_status prepare(const tn_kernel_site* site, int32_t direction, tn_prepared* prepared) {
  const tn_services* services = site->services;
  const tn_errors* errors = site->errors;
  const tn_memory* memory = (const tn_memory*)services->extension(services->self, TN_MEMORY);
  binding* made;
  if (memory == NULL) return tn_fail(errors, TN_UNSUPPORTED, NULL, "needs the service " TN_MEMORY);
  made = (binding*)memory->allocate(memory->self, sizeof(binding));
  if (made == NULL) return tn_fail(errors, TN_OUT_OF_MEMORY, NULL, "no memory for a binding");
  made->factor = tn_float(site->attributes, "factor", 2.0);
  made->memory = memory;
  prepared->binding = made;
  prepared->run = direction == TN_BACKWARD ? run_backward : run_forward;
  prepared->destroy = destroy;
  return TN_OK;
}

static const tn_dtype dtypes[] = {TN_F32, TN_F64};
static const tn_kernel kernel = {
    .size = sizeof(tn_kernel),
    .score = 10,
    .type = "example.scale",
    .device = "cpu",
    .name = "scale",
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
    .id = "org.example.scale",
    .version = "0.1.0",
    .doc = "A layer in C with a native kernel",
    .license = "MIT",
    .isa = "",
    .layers_count = 1,
    .kernels_count = 1,
    .layers = layers,
    .kernels = kernels,
};

const tn_plugin* tenon_plugin(void) { return &plugin; }

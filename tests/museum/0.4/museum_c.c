/* An exhibit of interface 0.4, in C: the layer museum.scale, out[i, c] = weight[c] * in[i, c] + shift, with a recorded
 * body and with native kernels for "cpu", and the updater museum.momentum. SPDX-License-Identifier: Apache-2.0 */
#include <tenon/plugin.h>

#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

/* ---- the layer */

static const tn_attribute shift = {.size = sizeof(tn_attribute),
                                   .kind = TN_ATTR_FLOAT,
                                   .name = "shift",
                                   .doc = "added to every value",
                                   .initial = {.kind = TN_ATTR_FLOAT, .count = 1, .as = {.f = 0.5}}};
static const tn_attribute native = {.size = sizeof(tn_attribute),
                                    .kind = TN_ATTR_BOOL,
                                    .name = "native",
                                    .doc = "whether the native kernel computes it",
                                    .initial = {.kind = TN_ATTR_BOOL, .count = 1, .as = {.i = 1}}};
static const tn_port in_port = {.size = sizeof(tn_port), .name = "in", .doc = "[samples, columns]"};
static const tn_port out_port = {.size = sizeof(tn_port), .name = "out", .doc = "as in"};
static const tn_attribute* const layer_attributes[] = {&shift, &native};
static const tn_port* const inputs[] = {&in_port};
static const tn_port* const outputs[] = {&out_port};
static const char* const suffixes[] = {"weight"};
static const tn_layer_description layer_description = {.size = sizeof(tn_layer_description),
                                                       .role = TN_ROLE_LAYER,
                                                       .type = "museum.scale",
                                                       .doc = "out = weight * in + shift",
                                                       .inputs_count = 1,
                                                       .outputs_count = 1,
                                                       .inputs = inputs,
                                                       .outputs = outputs,
                                                       .attributes_count = COUNT(layer_attributes),
                                                       .parameters_count = 1,
                                                       .attributes = layer_attributes,
                                                       .parameters = suffixes,
                                                       .state_version = 1};

static tn_status plan(const tn_planner* planner) {
  const tn_spec* in = planner->inputs[0];
  tn_spec weight = {.size = sizeof(tn_spec), .dtype = TN_COMPUTE, .storage = TN_DENSE, .rank = 1};
  tn_parameter parameter = {.size = sizeof(tn_parameter),
                            .suffix = "weight",
                            .spec = &weight,
                            .initializer = {.kind = TN_INIT_CONSTANT, .a = 0.25}};
  if (in->storage != TN_DENSE || in->rank != 2 || in->dims[1].symbol != TN_SYMBOL_NONE)
    return tn_fail(planner->errors, TN_INVALID, "in", "must be [samples, columns]");
  weight.dims = &in->dims[1];
  if (planner->parameter(planner->self, &parameter) < 0) return TN_INVALID;
  return planner->output(planner->self, 0, in);
}

static tn_status lower(const tn_attributes* attributes, const tn_builder* builder) {
  const tn_instruction instructions[] = {
      {TN_OP_INPUT, TN_FLOAT, 0, 0, 0, 0, 0}, {TN_OP_INPUT, TN_FLOAT, 0, 1, 0, 0, 0},
      {TN_OP_INPUT, TN_FLOAT, 0, 2, 0, 0, 0}, {TN_OP_SUB, TN_FLOAT, 0, 0, 1, 0, 0},
      {TN_OP_MUL, TN_FLOAT, 0, 3, 2, 0, 0},   {TN_OP_CONSTANT, TN_FLOAT, 0, 0, 0, 0, tn_float(attributes, "shift", 0)},
      {TN_OP_ADD, TN_FLOAT, 0, 4, 5, 0, 0},
  };
  const tn_program_input program_inputs[] = {
      {TN_FULL, TN_FLOAT, 0}, {TN_FULL, TN_FLOAT, 0}, {TN_PER_COLUMN, TN_FLOAT, 0}};
  const tn_program_output program_outputs[] = {{6, TN_COMPUTE}};
  const tn_program program = {.size = sizeof(tn_program),
                              .instructions_count = COUNT(instructions),
                              .instructions = instructions,
                              .inputs_count = 3,
                              .outputs_count = 1,
                              .inputs = program_inputs,
                              .outputs = program_outputs};
  /* The sum up to an element less the sum before it: the element. */
  const tn_ref in = builder->input(builder->self, 0, 0);
  const tn_ref operands[] = {builder->prefix_sum(builder->self, in, 0),
                             builder->prefix_sum(builder->self, in, TN_SUM_EXCLUSIVE),
                             builder->parameter(builder->self, 0)};
  const tn_pointwise call = {.size = sizeof(tn_pointwise), .leading = 1, .program = &program, .inputs = operands};
  tn_ref out = -1;
  builder->pointwise(builder->self, &call, &out);
  builder->output(builder->self, 0, out);
  return builder->status(builder->self);
}

static const tn_layer_type layer = {
    .size = sizeof(tn_layer_type), .description = &layer_description, .plan = plan, .lower = lower};

/* ---- its native kernel, which saves the input for backward: forward (in, weight) to (out, saved); backward (in,
 * weight, out, saved, gradient of out) to (gradient of in, gradient of weight) */

typedef struct binding {
  const tn_memory* memory;
  double shift;
} binding;

static tn_status forward(void* self, const tn_execution* execution, const tn_call* call) {
  const float* in = (const float*)(const void*)tn_data(call->inputs[0]);
  const float* weight = (const float*)(const void*)tn_data(call->inputs[1]);
  float* out = (float*)(void*)tn_data(call->outputs[0]);
  float* saved = (float*)(void*)tn_data(call->outputs[1]); /* null: the machine does not train */
  const int64_t rows = call->inputs[0]->dl.shape[0], columns = call->inputs[0]->dl.shape[1];
  (void)execution;
  for (int64_t i = 0; saved != NULL && i < rows * columns; ++i) saved[i] = in[i];
  if (call->requests[0] == TN_REQUEST_NONE) return TN_OK;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t c = 0; c < columns; ++c) {
      const float value = weight[c] * in[i * columns + c] + (float)((binding*)self)->shift;
      out[i * columns + c] = call->requests[0] == TN_REQUEST_ADD ? out[i * columns + c] + value : value;
    }
  return TN_OK;
}

static void put(float* to, uint8_t request, float value) { *to = request == TN_REQUEST_ADD ? *to + value : value; }

static tn_status backward(void* self, const tn_execution* execution, const tn_call* call) {
  const float* weight = (const float*)(const void*)tn_data(call->inputs[1]);
  const float* saved = (const float*)(const void*)tn_data(call->inputs[3]);
  const float* out_gradient = (const float*)(const void*)tn_data(call->inputs[4]); /* null: zero */
  float* in_gradient = (float*)(void*)tn_data(call->outputs[0]);
  float* weight_gradient = (float*)(void*)tn_data(call->outputs[1]);
  const int64_t rows = call->inputs[3]->dl.shape[0], columns = call->inputs[3]->dl.shape[1];
  (void)self;
  (void)execution;
  for (int64_t c = 0; c < columns; ++c) {
    float sum = 0;
    for (int64_t i = 0; i < rows; ++i) {
      const float slope = out_gradient == NULL ? 0 : out_gradient[i * columns + c];
      sum += slope * saved[i * columns + c];
      if (call->requests[0] != TN_REQUEST_NONE)
        put(&in_gradient[i * columns + c], call->requests[0], slope * weight[c]);
    }
    if (call->requests[1] != TN_REQUEST_NONE) put(&weight_gradient[c], call->requests[1], sum);
  }
  return TN_OK;
}

static void destroy(void* self) {
  const tn_memory* memory = ((binding*)self)->memory;
  memory->release(memory->self, self, sizeof(binding));
}

/* A deployer may turn the kernel off; the recorded body computes the same. */
static const tn_attribute offers_kernel = {.size = sizeof(tn_attribute),
                                           .kind = TN_ATTR_BOOL,
                                           .name = "kernel",
                                           .doc = "whether the native kernel is offered",
                                           .initial = {.kind = TN_ATTR_BOOL, .count = 1, .as = {.i = 1}}};

static tn_status supports(const tn_kernel_site* site, int32_t* score) {
  const tn_attributes* options = tn_options_of(site->services, "tenon.museum.c");
  (void)score;
  if (options != NULL && tn_int(options, "kernel", 1) == 0) return TN_UNSUPPORTED;
  return tn_int(site->attributes, "native", 0) != 0 ? TN_OK : TN_UNSUPPORTED;
}

static tn_status query(const tn_kernel_site* site, tn_kernel_needs* needs) {
  tn_spec saved = *site->inputs[0];
  saved.dtype = TN_F32;
  needs->reads_in[site->inputs_count] = 1; /* the weight */
  return needs->saved(needs->self, &saved) < 0 ? TN_INVALID : TN_OK;
}

static tn_status prepare(const tn_kernel_site* site, int32_t direction, tn_prepared* prepared) {
  const tn_memory* memory = (const tn_memory*)site->services->extension(site->services->self, TN_MEMORY);
  binding* made;
  if (memory == NULL || (direction != TN_FORWARD && direction != TN_BACKWARD)) return TN_UNSUPPORTED;
  made = (binding*)memory->allocate(memory->self, sizeof(binding));
  if (made == NULL) return tn_fail(site->errors, TN_OUT_OF_MEMORY, NULL, "no memory for a binding");
  made->memory = memory;
  made->shift = tn_float(site->attributes, "shift", 0);
  prepared->traits = TN_TRAIT_ANY_ALIGNMENT;
  prepared->binding = made;
  prepared->run = direction == TN_BACKWARD ? backward : forward;
  prepared->destroy = destroy;
  return TN_OK;
}

static const tn_dtype dtypes[] = {TN_F32};
static const tn_kernel kernel = {.size = sizeof(tn_kernel),
                                 .score = 10,
                                 .type = "museum.scale",
                                 .device = "cpu",
                                 .name = "museum_scale",
                                 .dtypes_count = 1,
                                 .dtypes = dtypes,
                                 .supports = supports,
                                 .query = query,
                                 .prepare = prepare,
                                 .inputs_known = 1,
                                 .outputs_known = 1,
                                 .parameters_known = 1};

/* ---- the updater: velocity = keep * velocity + gradient; parameter = parameter - learning_rate * velocity */

static const tn_attribute learning_rate = {.size = sizeof(tn_attribute),
                                           .kind = TN_ATTR_FLOAT,
                                           .name = "learning_rate",
                                           .doc = "step size",
                                           .has_range = 1,
                                           .initial = {.kind = TN_ATTR_FLOAT, .count = 1, .as = {.f = 0.1}}};
static const tn_attribute keep = {.size = sizeof(tn_attribute),
                                  .kind = TN_ATTR_FLOAT,
                                  .name = "keep",
                                  .doc = "share of the velocity that is kept",
                                  .has_range = 3,
                                  .maximum = 1,
                                  .initial = {.kind = TN_ATTR_FLOAT, .count = 1, .as = {.f = 0.5}}};
static const tn_attribute* const updater_attributes[] = {&learning_rate, &keep};
static const tn_updater_description updater_description = {.size = sizeof(tn_updater_description),
                                                           .attributes_count = COUNT(updater_attributes),
                                                           .type = "museum.momentum",
                                                           .doc = "v = keep * v + g; p = p - learning_rate * v",
                                                           .attributes = updater_attributes,
                                                           .state_version = 1};

static tn_status record(const tn_update_recorder* recorder) {
  const tn_instruction instructions[] = {
      {TN_OP_INPUT, TN_FLOAT, 0, 0, 0, 0, 0}, /* parameter */
      {TN_OP_INPUT, TN_FLOAT, 0, 1, 0, 0, 0}, /* gradient */
      {TN_OP_INPUT, TN_FLOAT, 0, 2, 0, 0, 0}, /* velocity */
      {TN_OP_INPUT, TN_FLOAT, 0, 3, 0, 0, 0}, /* learning rate */
      {TN_OP_CONSTANT, TN_FLOAT, 0, 0, 0, 0, tn_float(recorder->attributes, "keep", 0)},
      {TN_OP_MUL, TN_FLOAT, 0, 2, 4, 0, 0},
      {TN_OP_ADD, TN_FLOAT, 0, 5, 1, 0, 0},
      {TN_OP_MUL, TN_FLOAT, 0, 3, 6, 0, 0},
      {TN_OP_SUB, TN_FLOAT, 0, 0, 7, 0, 0},
  };
  const tn_program_input program_inputs[] = {
      {TN_FULL, TN_FLOAT, 0}, {TN_FULL, TN_FLOAT, 0}, {TN_FULL, TN_FLOAT, 0}, {TN_SCALAR, TN_FLOAT, 0}};
  const tn_program_output program_outputs[] = {{8, TN_COMPUTE}, {6, TN_COMPUTE}};
  const tn_program program = {.size = sizeof(tn_program),
                              .instructions_count = COUNT(instructions),
                              .instructions = instructions,
                              .inputs_count = 4,
                              .outputs_count = 2,
                              .inputs = program_inputs,
                              .outputs = program_outputs};
  const int32_t scalars[] = {TN_SCALAR_LEARNING_RATE};
  const tn_state velocity = {.size = sizeof(tn_state), .extent = TN_FULL, .dtype = TN_F32, .name = "velocity"};
  const tn_update update = {.size = sizeof(tn_update),
                            .grain = TN_GRAIN_ELEMENT,
                            .program = &program,
                            .scalars = scalars,
                            .scalars_count = 1};
  if (recorder->state(recorder->self, &velocity) < 0) return TN_INVALID;
  return recorder->program(recorder->self, &update);
}

static const tn_updater_type updater = {
    .size = sizeof(tn_updater_type), .description = &updater_description, .record = record};

/* ---- the plugin */

static const tn_layer_type* const layers[] = {&layer};
static const tn_kernel* const kernels[] = {&kernel};
static const tn_updater_type* const updaters[] = {&updater};
static const tn_attribute* const options[] = {&offers_kernel};
static const tn_plugin plugin = {.size = sizeof(tn_plugin),
                                 .abi = {TN_ABI_MAJOR, TN_ABI_MINOR, TN_ABI_MINOR, 0},
                                 .id = "tenon.museum.c",
                                 .version = "0.4.0",
                                 .doc = "An exhibit of interface 0.4 in C",
                                 .license = "Apache-2.0",
                                 .isa = "",
                                 .layers_count = 1,
                                 .kernels_count = 1,
                                 .layers = layers,
                                 .kernels = kernels,
                                 .updaters_count = 1,
                                 .updaters = updaters,
                                 .options_count = 1,
                                 .options = options};

const tn_plugin* tenon_plugin(void) { return &plugin; }

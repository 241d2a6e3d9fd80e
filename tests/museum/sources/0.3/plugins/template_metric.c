/* A metric: the relative squared error, the sum of (prediction - label)^2 over that of (label - mean label)^2. Its sums
 * are added over minibatches and devices, so the value does not depend on how the data is split.
 * SPDX-License-Identifier: MIT */
#include <tenon/plugin.h>

TN_RESERVE_NOTE(4096); /* room for the manifest, if the plugin is built without CMake */

enum { PREDICTION, LABEL, INPUTS };                   /* ports */
enum { VALUES, LABELS, LABEL_SQUARES, ERRORS, SUMS }; /* the state */

/* The declarations. */
static const tn_port prediction_port = {
    .size = sizeof(tn_port), .name = "prediction", .doc = "[samples] or [samples, 1]"};
static const tn_port label_port = {.size = sizeof(tn_port), .name = "label", .doc = "as the prediction: what is right"};
static const tn_port* const inputs[INPUTS] = {&prediction_port, &label_port};
static const tn_layer_description description = {
    .size = sizeof(tn_layer_description),
    .role = TN_ROLE_METRIC,
    .type = "example.my_plugin",
    .doc = "Relative squared error: 0 is exact, 1 as good as the mean of the labels",
    .inputs_count = INPUTS,
    .inputs = inputs,
    .state_version = 1,
};

/* Whether a spec has one value for each sample; ones may follow the samples. */
static int is_one_value(const tn_spec* in) {
  for (int32_t i = 1; i < in->rank; ++i)
    if (in->dims[i].symbol != TN_SYMBOL_NONE || in->dims[i].offset != 1) return 0;
  return in->rank >= 1;
}

static tn_status plan(const tn_planner* planner) {
  for (uint32_t i = 0; i < INPUTS; ++i)
    if (!is_one_value(planner->inputs[i]))
      return tn_fail(planner->errors, TN_INVALID, inputs[i]->name, "must be [samples] or [samples, 1]");
  return planner->state(planner->self, SUMS);
}

/* Instruction i makes value i from the earlier values whose numbers it names. */
static const tn_instruction instructions[] = {
    {TN_OP_INPUT, TN_FLOAT, 0, PREDICTION, 0, 0, 0},     /* 0 */
    {TN_OP_INPUT, TN_FLOAT, 0, LABEL, 0, 0, 0},          /* 1 */
    {TN_OP_EQUAL, TN_LOGICAL, 0, 1, 1, 0, 0},            /* 2 */
    {TN_OP_CAST, TN_FLOAT, 0, 2, 0, 0, 0},               /* 3: 1 for each value */
    {TN_OP_REDUCE_SUM, TN_FLOAT, TN_SCALAR, 3, 0, 0, 0}, /* 4: VALUES */
    {TN_OP_REDUCE_SUM, TN_FLOAT, TN_SCALAR, 1, 0, 0, 0}, /* 5: LABELS */
    {TN_OP_MUL, TN_FLOAT, 0, 1, 1, 0, 0},                /* 6 */
    {TN_OP_REDUCE_SUM, TN_FLOAT, TN_SCALAR, 6, 0, 0, 0}, /* 7: LABEL_SQUARES */
    {TN_OP_SUB, TN_FLOAT, 0, 0, 1, 0, 0},                /* 8 */
    {TN_OP_MUL, TN_FLOAT, 0, 8, 8, 0, 0},                /* 9 */
    {TN_OP_REDUCE_SUM, TN_FLOAT, TN_SCALAR, 9, 0, 0, 0}, /* 10: ERRORS */
};
static const tn_program_input program_inputs[INPUTS] = {{TN_FULL, TN_FLOAT, 0}, {TN_FULL, TN_FLOAT, 0}};
static const tn_program_output program_outputs[SUMS] = {
    {4, TN_COMPUTE}, {5, TN_COMPUTE}, {7, TN_COMPUTE}, {10, TN_COMPUTE}};
static const tn_program program = {
    .size = sizeof(tn_program),
    .instructions_count = sizeof instructions / sizeof instructions[0],
    .instructions = instructions,
    .inputs_count = INPUTS,
    .outputs_count = SUMS,
    .inputs = program_inputs,
    .outputs = program_outputs,
};

static tn_status lower(const tn_attributes* attributes, const tn_builder* body) {
  const tn_ref prediction = body->input(body->self, PREDICTION, 0), label = body->input(body->self, LABEL, 0);
  const tn_spec* shape = body->spec(body->self, prediction);
  tn_ref in[INPUTS] = {prediction, -1}, sums[SUMS] = {-1, -1, -1, -1};
  const tn_pointwise call = {.size = sizeof call, .leading = 1, .program = &program, .inputs = in};
  (void)attributes;
  if (shape == NULL) return body->status(body->self);
  in[LABEL] = body->view(body->self, label, shape->dims, shape->rank); /* [samples] as [samples, 1] */
  (void)body->pointwise(body->self, &call, sums);
  for (uint32_t i = 0; i < SUMS; ++i) (void)body->state(body->self, i, sums[i]);
  return body->status(body->self); /* of the first call that failed, if any */
}

static tn_status finalize(const tn_finalizer* finalizer) {
  const double* state = finalizer->state;
  const double spread = state[VALUES] > 0 ? state[LABEL_SQUARES] - state[LABELS] * state[LABELS] / state[VALUES] : 0;
  finalizer->result(finalizer->self, "my_plugin", spread > 0 ? state[ERRORS] / spread : 0);
  return TN_OK;
}

static const tn_layer_type metric = {
    .size = sizeof(tn_layer_type),
    .description = &description,
    .plan = plan,
    .lower = lower,
    .finalize = finalize,
};
static const tn_layer_type* const layers[] = {&metric};
static const tn_plugin plugin = {
    .size = sizeof(tn_plugin),
    .abi = {TN_ABI_MAJOR, TN_ABI_MINOR, 2, 0}, /* runs on hosts from 0.2 on */
    .id = "example.my_plugin",
    .version = "0.1.0",
    .doc = "The relative squared error",
    .license = "MIT",
    .isa = "",
    .layers_count = 1,
    .layers = layers,
};

const tn_plugin* tenon_plugin(void) { return &plugin; }

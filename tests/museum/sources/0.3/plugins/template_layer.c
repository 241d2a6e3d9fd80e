/* A layer: out = in * sigmoid(beta * in), after P. Ramachandran, B. Zoph, Q. V. Le, "Searching for activation
 * functions", 2017. The formula is recorded as a program; the host derives the gradient, fuses it with its neighbours
 * and runs it on any device. SPDX-License-Identifier: MIT */
#include <tenon/plugin.h>

TN_RESERVE_NOTE(4096); /* room for the manifest, if the plugin is built without CMake */

/* The declarations. */
static const tn_attribute beta = {
    .size = sizeof(tn_attribute),
    .kind = TN_ATTR_FLOAT,
    .name = "beta",
    .doc = "steepness; 0 gives in / 2",
    .initial = {.kind = TN_ATTR_FLOAT, .count = 1, .as = {.f = 1.0}},
};
static const tn_port in_port = {.size = sizeof(tn_port), .name = "in", .doc = "[samples, ...]"};
static const tn_port out_port = {.size = sizeof(tn_port), .name = "out", .doc = "as in"};
static const tn_attribute* const attributes[] = {&beta};
static const tn_port* const inputs[] = {&in_port};
static const tn_port* const outputs[] = {&out_port};
static const tn_layer_description description = {
    .size = sizeof(tn_layer_description),
    .role = TN_ROLE_LAYER,
    .type = "example.my_plugin",
    .doc = "out = in * sigmoid(beta * in)",
    .inputs_count = 1,
    .outputs_count = 1,
    .inputs = inputs,
    .outputs = outputs,
    .attributes_count = 1,
    .attributes = attributes,
    .state_version = 1,
};

/* The output has the shape of the input, in the float type of the machine. */
static tn_status plan(const tn_planner* planner) {
  tn_spec out = *planner->inputs[0];
  out.size = sizeof out;
  out.dtype = TN_COMPUTE;
  return planner->output(planner->self, 0, &out);
}

/* The formula: instruction i makes value i from the earlier values whose numbers it names. */
static tn_status lower(const tn_attributes* given, const tn_builder* body) {
  const tn_instruction instructions[] = {
      {TN_OP_INPUT, TN_FLOAT, 0, 0, 0, 0, 0},                                /* 0: in */
      {TN_OP_CONSTANT, TN_FLOAT, 0, 0, 0, 0, -tn_float(given, "beta", 1.0)}, /* 1: -beta */
      {TN_OP_MUL, TN_FLOAT, 0, 0, 1, 0, 0},                                  /* 2: -beta * in */
      {TN_OP_EXP, TN_FLOAT, 0, 2, 0, 0, 0},                                  /* 3 */
      {TN_OP_CONSTANT, TN_FLOAT, 0, 0, 0, 0, 1},                             /* 4: 1 */
      {TN_OP_ADD, TN_FLOAT, 0, 4, 3, 0, 0},                                  /* 5: 1 + exp(-beta * in) */
      {TN_OP_DIV, TN_FLOAT, 0, 0, 5, 0, 0},                                  /* 6: the output */
  };
  const tn_program_input in = {.extent = TN_FULL, .kind = TN_FLOAT};
  const tn_program_output out = {.value = 6, .dtype = TN_COMPUTE};
  const tn_program program = {
      .size = sizeof program,
      .instructions_count = sizeof instructions / sizeof instructions[0],
      .instructions = instructions,
      .inputs_count = 1,
      .outputs_count = 1,
      .inputs = &in,
      .outputs = &out,
  };
  const tn_ref input = body->input(body->self, 0, 0);
  const tn_pointwise call = {.size = sizeof call, .leading = 1, .program = &program, .inputs = &input};
  tn_ref output = -1;
  (void)body->pointwise(body->self, &call, &output);
  (void)body->output(body->self, 0, output);
  return body->status(body->self); /* of the first call that failed, if any */
}

static const tn_layer_type layer = {
    .size = sizeof(tn_layer_type),
    .description = &description,
    .plan = plan,
    .lower = lower,
};
static const tn_layer_type* const layers[] = {&layer};
static const tn_plugin plugin = {
    .size = sizeof(tn_plugin),
    .abi = {TN_ABI_MAJOR, TN_ABI_MINOR, 2, 0}, /* runs on hosts from 0.2 on */
    .id = "example.my_plugin",
    .version = "0.1.0",
    .doc = "The activation swish",
    .license = "MIT",
    .isa = "",
    .layers_count = 1,
    .layers = layers,
};

const tn_plugin* tenon_plugin(void) { return &plugin; }

/* An exhibit of interface 0.4, in C: the layer museum.sums, over sequences [rows, columns]: for each row the sum over
 * it and the rows behind it of weight[c] * in[i, c], and the sum over each sequence.
 * SPDX-License-Identifier: Apache-2.0 */
#include <tenon/plugin.h>

static const tn_port in_port = {.size = sizeof(tn_port), .name = "in", .doc = "[rows, columns]"};
static const tn_port out_port = {.size = sizeof(tn_port), .name = "out", .doc = "as in"};
static const tn_port sum_port = {.size = sizeof(tn_port), .name = "sum", .doc = "[samples, columns]"};
static const tn_port* const inputs[] = {&in_port};
static const tn_port* const outputs[] = {&out_port, &sum_port};
static const char* const suffixes[] = {"weight"};
static const tn_layer_description description = {.size = sizeof(tn_layer_description),
                                                 .role = TN_ROLE_LAYER,
                                                 .type = "museum.sums",
                                                 .doc = "sums over the rows of sequences",
                                                 .inputs_count = 1,
                                                 .outputs_count = 2,
                                                 .inputs = inputs,
                                                 .outputs = outputs,
                                                 .parameters_count = 1,
                                                 .parameters = suffixes,
                                                 .state_version = 1};

static tn_status plan(const tn_planner* planner) {
  const tn_spec* in = planner->inputs[0];
  tn_spec weight = {.size = sizeof(tn_spec), .dtype = TN_COMPUTE, .storage = TN_DENSE, .rank = 1};
  tn_spec sum = {.size = sizeof(tn_spec), .dtype = TN_COMPUTE, .storage = TN_DENSE, .rank = 2};
  const tn_parameter parameter = {.size = sizeof(tn_parameter),
                                  .suffix = "weight",
                                  .spec = &weight,
                                  .initializer = {.kind = TN_INIT_CONSTANT, .a = 0.25}};
  tn_dim sizes[2];
  if (in->storage != TN_RAGGED || in->rank != 2)
    return tn_fail(planner->errors, TN_INVALID, "in", "must be sequences, [rows, columns]");
  sizes[0] = in->outer[0];
  sizes[1] = in->dims[1];
  weight.dims = &in->dims[1];
  if (planner->parameter(planner->self, &parameter) < 0) return TN_INVALID;
  sum.dims = sizes;
  planner->output(planner->self, 1, &sum);
  sizes[0] = in->dims[0];
  return planner->output(planner->self, 0, &sum);
}

/* a + weight * b, where weight is a value for each column. */
static tn_ref added(const tn_builder* builder, tn_ref a, tn_ref b, tn_ref weight) {
  const tn_instruction instructions[] = {{TN_OP_INPUT, TN_FLOAT, 0, 0, 0, 0, 0},
                                         {TN_OP_INPUT, TN_FLOAT, 0, 1, 0, 0, 0},
                                         {TN_OP_INPUT, TN_FLOAT, 0, 2, 0, 0, 0},
                                         {TN_OP_MUL, TN_FLOAT, 0, 1, 2, 0, 0},
                                         {TN_OP_ADD, TN_FLOAT, 0, 0, 3, 0, 0}};
  const tn_program_input program_inputs[] = {
      {TN_FULL, TN_FLOAT, 0}, {TN_FULL, TN_FLOAT, 0}, {TN_PER_COLUMN, TN_FLOAT, 0}};
  const tn_program_output program_outputs[] = {{4, TN_COMPUTE}};
  const tn_program program = {.size = sizeof(tn_program),
                              .instructions_count = 5,
                              .instructions = instructions,
                              .inputs_count = 3,
                              .outputs_count = 1,
                              .inputs = program_inputs,
                              .outputs = program_outputs};
  const tn_ref operands[] = {a, b, weight};
  const tn_pointwise call = {.size = sizeof(tn_pointwise), .leading = 1, .program = &program, .inputs = operands};
  tn_ref out = -1;
  builder->pointwise(builder->self, &call, &out);
  return out;
}

static tn_status lower(const tn_attributes* attributes, const tn_builder* builder) {
  void* const self = builder->self;
  const tn_ref in = builder->input(self, 0, 0);
  const tn_spec* const spec = builder->spec(self, in);
  tn_spec row = {.size = sizeof(tn_spec), .dtype = TN_COMPUTE, .storage = TN_DENSE, .rank = 1};
  tn_dim steps;
  tn_ref sum, next;
  (void)attributes;
  if (spec == NULL) return builder->status(self);
  row.dims = &spec->dims[1];
  builder->scan_begin(self, &spec->dims[0], TN_SCAN_REVERSE, &steps);
  sum = builder->scan_memory(self, &row, -1);
  next = added(builder, sum, builder->scan_input(self, in), builder->parameter(self, 0));
  builder->scan_next(self, sum, next);
  builder->scan_end(self);
  builder->output(self, 0, builder->scan_output(self, next));
  builder->output(self, 1, builder->scan_last(self, sum));
  return builder->status(self);
}

static const tn_layer_type layer = {
    .size = sizeof(tn_layer_type), .description = &description, .plan = plan, .lower = lower};
static const tn_layer_type* const layers[] = {&layer};
static const tn_plugin plugin = {.size = sizeof(tn_plugin),
                                 .abi = {TN_ABI_MAJOR, TN_ABI_MINOR, TN_ABI_MINOR, 0},
                                 .id = "tenon.museum.scan",
                                 .version = "0.4.0",
                                 .doc = "An exhibit of interface 0.4 in C, over sequences",
                                 .license = "Apache-2.0",
                                 .isa = "",
                                 .layers_count = 1,
                                 .layers = layers};

const tn_plugin* tenon_plugin(void) { return &plugin; }

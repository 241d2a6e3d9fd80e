/* An exhibit in C: a layer that offers the step of generation, by a memory and by the rows before, the layers of that
 * step, and a limit of integers with an exception. SPDX-License-Identifier: Apache-2.0 */
#define SINCE 3
#include "../layer.h"

static const tn_port in_port = PORT("in", 0), out_port = PORT("out", 0), a_port = PORT("a", 0), b_port = PORT("b", 0);
static const tn_port history_port = PORT("history", 0), past_port = PORT("past", TN_PORT_INTEGER);
static const tn_port position_port = PORT("position", TN_PORT_INTEGER), ids_port = PORT("ids", TN_PORT_INTEGER);
static const tn_port* const in_ports[] = {&in_port};
static const tn_port* const ab_ports[] = {&a_port, &b_port};
static const tn_port* const now_ports[] = {&a_port, &b_port, &history_port, &past_port, &position_port};
static const tn_port* const ids_ports[] = {&ids_port};
static const tn_port* const out_ports[] = {&out_port};
static const char* const weight[] = {"weight"};

#define LAYER(name_, text, inputs_, extension_, ...)                                             \
  static const tn_layer_description name_##_description = {.size = sizeof(tn_layer_description), \
                                                           .role = TN_ROLE_LAYER,                \
                                                           .type = "museum." #name_,             \
                                                           .doc = text,                          \
                                                           .inputs_count = COUNT(inputs_),       \
                                                           .outputs_count = 1,                   \
                                                           .inputs = inputs_,                    \
                                                           .outputs = out_ports,                 \
                                                           .state_version = 1,                   \
                                                           __VA_ARGS__};                         \
  static const tn_layer_type name_ = {.size = sizeof(tn_layer_type),                             \
                                      .description = &name_##_description,                       \
                                      .plan = plan_##name_,                                      \
                                      .lower = lower_##name_,                                    \
                                      .extension = extension_}

static tn_status plan_like_first(const tn_planner* planner) {
  if (planner->inputs[0]->rank != 2) return bad_input(planner, "in");
  return output_of(planner, 0, 2, planner->inputs[0]->dims);
}

/* ---- museum.recall: twice the sum of the rows so far, plus the number of the row */

static tn_status plan_recall(const tn_planner* planner) {
  if (planner->inputs[0]->storage != TN_RAGGED) return bad_input(planner, "in");
  return plan_like_first(planner);
}
static tn_status lower_recall(const tn_attributes* attributes, const tn_builder* builder) {
  void* const self = builder->self;
  const tn_ref in = builder->input(self, 0, 0);
  const tn_spec* spec = builder->spec(self, in);
  formula sum = {0}, twice = {0};
  tn_spec row;
  tn_dim steps;
  tn_ref operands[2], next, out;
  int32_t value;
  (void)attributes;
  if (spec == NULL || builder->scan_begin(self, &spec->dims[0], 0, &steps) != TN_OK) return builder->status(self);
  row = spec_of(TN_COMPUTE, 1, &spec->dims[1]);
  operands[0] = builder->scan_memory(self, &row, -1);
  operands[1] = builder->scan_input(self, in);
  value = operand(&sum, TN_FULL, TN_FLOAT);
  result(&sum, binary(&sum, TN_OP_ADD, value, operand(&sum, TN_FULL, TN_FLOAT)), TN_COMPUTE);
  apply(&sum, builder, 1, operands, &next, NULL);
  builder->scan_next(self, operands[0], next);
  builder->scan_end(self);
  operands[0] = builder->scan_output(self, next);
  operands[1] = builder->segment(self, TN_SEGMENT_POSITION, -1, &spec->dims[0], 0);
  value = operand(&twice, TN_FULL, TN_FLOAT);
  value = binary(&twice, TN_OP_ADD, value, value);
  result(&twice,
         binary(&twice, TN_OP_ADD, value, op(&twice, TN_OP_CAST, TN_FLOAT, operand(&twice, TN_PER_ROW, TN_INT), 0, 0)),
         TN_COMPUTE);
  apply(&twice, builder, 1, operands, &out, NULL);
  builder->output(self, 0, out);
  return builder->status(self);
}
static tn_ref added(const tn_expander* expander, const char* type, uint32_t count, const tn_ref* inputs) {
  const tn_expansion_layer layer = {
      .size = sizeof(tn_expansion_layer), .inputs_count = count, .type = type, .inputs = inputs};
  return expander->layer(expander->self, &layer);
}
static tn_status step_recall(const tn_stepper* stepper) {
  const tn_expander* expander = stepper->expander;
  const tn_dim dims[2] = {tn_dim_symbol(TN_SYMBOL_SAMPLES), tn_dim_constant(2)};
  const tn_spec spec = spec_of(TN_COMPUTE, 2, dims);
  const tn_step_memory memory = {.size = sizeof(tn_step_memory), .input = -1, .spec = &spec};
  const tn_ref x = expander->input(expander->self, 0), before = stepper->memory(stepper->self, &memory);
  const tn_ref terms[] = {before, x};
  const tn_ref sum = added(expander, "museum.add", 2, terms);
  const tn_ref history = stepper->history(stepper->self, x), past = stepper->past(stepper->self);
  const tn_ref now[] = {sum, x, history, past, stepper->position(stepper->self)};
  stepper->next(stepper->self, before, sum);
  return expander->output(expander->self, 0, added(expander, "museum.now", 5, now));
}
static const tn_step step_table = {.size = sizeof(tn_step), .step = step_recall};
static const void* extension(void* user, const char* id) {
  (void)user;
  return strcmp(id, TN_STEP) == 0 ? &step_table : NULL;
}
LAYER(recall, "twice the sum of the rows so far, plus the row's number", in_ports, extension, .parameters_count = 0);

/* ---- museum.add; museum.now: a + b + the sum of the past rows of a history + the position */

static tn_status plan_add(const tn_planner* planner) { return plan_like_first(planner); }
static tn_status lower_add(const tn_attributes* attributes, const tn_builder* builder) {
  const tn_ref operands[] = {builder->input(builder->self, 0, 0), builder->input(builder->self, 1, 0)};
  formula f = {0};
  const int32_t a = operand(&f, TN_FULL, TN_FLOAT);
  tn_ref out;
  (void)attributes;
  result(&f, binary(&f, TN_OP_ADD, a, operand(&f, TN_FULL, TN_FLOAT)), TN_COMPUTE);
  apply(&f, builder, 1, operands, &out, NULL);
  builder->output(builder->self, 0, out);
  return builder->status(builder->self);
}
LAYER(add, "a + b", ab_ports, NULL, .parameters_count = 0);

static tn_status plan_now(const tn_planner* planner) { return plan_like_first(planner); }
static tn_status lower_now(const tn_attributes* attributes, const tn_builder* builder) {
  void* const self = builder->self;
  const tn_ref past = builder->input(self, 3, 0), rows = builder->gather(self, builder->input(self, 2, 0), past);
  const tn_spec* spec = builder->spec(self, past);
  formula f = {0};
  tn_ref operands[4], out;
  int32_t sum;
  (void)attributes;
  if (spec == NULL) return builder->status(self);
  operands[0] = builder->input(self, 0, 0);
  operands[1] = builder->input(self, 1, 0);
  operands[2] = builder->segment(self, TN_SEGMENT_SUM, rows, &spec->dims[0], 0);
  operands[3] = builder->input(self, 4, 0);
  sum = operand(&f, TN_FULL, TN_FLOAT);
  for (int i = 0; i < 2; ++i) sum = binary(&f, TN_OP_ADD, sum, operand(&f, TN_FULL, TN_FLOAT));
  sum = binary(&f, TN_OP_ADD, sum, op(&f, TN_OP_CAST, TN_FLOAT, operand(&f, TN_PER_ROW, TN_INT), 0, 0));
  result(&f, sum, TN_COMPUTE);
  apply(&f, builder, 1, operands, &out, NULL);
  builder->output(self, 0, out);
  return builder->status(self);
}
LAYER(now, "a + b + the past rows + the position", now_ports, NULL, .parameters_count = 0);

/* ---- museum.scores: in [rows, 2] times a weight [2, 5] */

static tn_status plan_scores(const tn_planner* planner) {
  const tn_spec* in = planner->inputs[0];
  tn_dim dims[2] = {tn_dim_constant(2), tn_dim_constant(5)};
  if (in->rank != 2 || in->dims[1].offset != 2) return bad_input(planner, "in");
  if (parameter_of(planner, "weight", 2, dims, 1, 0) < 0) return TN_INVALID;
  dims[0] = in->dims[0];
  return output_of(planner, 0, 2, dims);
}
static tn_status lower_scores(const tn_attributes* attributes, const tn_builder* builder) {
  void* const self = builder->self;
  (void)attributes;
  builder->output(self, 0, builder->gemm(self, builder->input(self, 0, 0), builder->parameter(self, 0), 0, 1));
  return builder->status(self);
}
LAYER(scores, "in times a weight", in_ports, NULL, .parameters_count = 1, .parameters = weight);

/* ---- museum.exempt: ids [samples] below 5, or -1, as floats */

static tn_status plan_exempt(const tn_planner* planner) {
  if (planner->inputs[0]->rank != 1) return bad_input(planner, "ids");
  if (planner->index_limit(planner->self, 0, 5) != TN_OK) return TN_INVALID;
  if (planner->index_exempt(planner->self, 0, -1) != TN_OK) return TN_INVALID;
  return output_of(planner, 0, 1, planner->inputs[0]->dims);
}
static tn_status lower_exempt(const tn_attributes* attributes, const tn_builder* builder) {
  const tn_ref ids = builder->input(builder->self, 0, 0);
  formula f = {0};
  tn_ref out;
  (void)attributes;
  result(&f, op(&f, TN_OP_CAST, TN_FLOAT, operand(&f, TN_FULL, TN_INT), 0, 0), TN_COMPUTE);
  apply(&f, builder, 1, &ids, &out, NULL);
  builder->output(builder->self, 0, out);
  return builder->status(builder->self);
}
LAYER(exempt, "ids as floats", ids_ports, NULL, .parameters_count = 0);

static const tn_layer_type* const layers[] = {&recall, &add, &now, &scores, &exempt};
PLUGIN("museum.steps", "An exhibit: the step of a layer", .layers_count = COUNT(layers), .layers = layers)

/* An exhibit in C: layers that record every opcode, products and shapes; a variadic cost, a metric, buffers, carried
 * states, an expansion. SPDX-License-Identifier: Apache-2.0 */
#include "layer.h"

/* ---- museum.opcodes: every opcode once, of x * weight and y */

enum { OPCODES = 42 };

static const tn_port x_port = PORT("x", 0), y_port = PORT("y", 0), in_port = PORT("in", 0);
static const tn_port values_port = PORT("values", TN_PORT_VARIADIC), out_port = PORT("out", 0);
static const tn_port other_port = PORT("other", 0), many_port = PORT("in", TN_PORT_VARIADIC);
static const tn_port weights_port = PORT("weights", TN_PORT_OPTIONAL);
static const tn_port* const xy_ports[] = {&x_port, &y_port};
static const tn_port* const values_ports[] = {&values_port};
static const tn_port* const in_ports[] = {&in_port};
static const tn_port* const out_ports[] = {&out_port};
static const tn_port* const two_ports[] = {&out_port, &other_port};
static const tn_port* const many_ports[] = {&many_port};
static const tn_port* const metric_ports[] = {&in_port, &weights_port};
static const char* const weight[] = {"weight"};

static tn_status plan_opcodes(const tn_planner* planner) {
  const tn_spec* x = planner->inputs[0];
  if (!is_matrix(x)) return bad_input(planner, "x");
  if (parameter_of(planner, "weight", 1, &x->dims[1], 1, 0) < 0) return TN_INVALID;
  for (uint32_t i = 0; i < OPCODES; ++i)
    if (output_of(planner, i, 2, x->dims) != TN_OK) return TN_INVALID;
  return TN_OK;
}
static int32_t to_float(formula* f, int32_t value) { return op(f, TN_OP_CAST, TN_FLOAT, value, 0, 0); }
static void put_floats(formula* f, int32_t x, int32_t y, int32_t positive) {
  static const int of_two[] = {TN_OP_ADD, TN_OP_SUB, TN_OP_MUL, TN_OP_DIV, TN_OP_MIN, TN_OP_MAX};
  static const int of_one[] = {TN_OP_NEG,  TN_OP_ABS, TN_OP_FLOOR, TN_OP_ROUND, TN_OP_EXP, TN_OP_EXPM1,
                               TN_OP_TANH, TN_OP_ERF, TN_OP_SIN,   TN_OP_COS,   TN_OP_SIGN};
  static const int of_positive[] = {TN_OP_SQRT, TN_OP_LOG, TN_OP_LOG1P};
  static const int folds[] = {TN_OP_REDUCE_SUM, TN_OP_REDUCE_MAX, TN_OP_REDUCE_MIN};
  for (uint32_t i = 0; i < COUNT(of_two); ++i) result(f, binary(f, of_two[i], x, y), TN_COMPUTE);
  for (uint32_t i = 0; i < COUNT(of_one); ++i) result(f, unary(f, of_one[i], x), TN_COMPUTE);
  for (uint32_t i = 0; i < COUNT(of_positive); ++i) result(f, unary(f, of_positive[i], positive), TN_COMPUTE);
  result(f, binary(f, TN_OP_POW, positive, y), TN_COMPUTE);
  for (uint32_t i = 0; i < COUNT(folds); ++i)
    result(f, binary(f, TN_OP_SUB, y, reduced(f, folds[i], TN_PER_ROW, x)), TN_COMPUTE);
}
static void put_truths(formula* f, int32_t x, int32_t y) {
  const int32_t less = op(f, TN_OP_LESS, TN_LOGICAL, x, y, 0), zero = constant(f, TN_FLOAT, 0);
  const int32_t below = op(f, TN_OP_LESS, TN_LOGICAL, x, zero, 0), root = unary(f, TN_OP_SQRT, x);
  result(f, to_float(f, op(f, TN_OP_EQUAL, TN_LOGICAL, x, y, 0)), TN_COMPUTE);
  result(f, to_float(f, less), TN_COMPUTE);
  result(f, to_float(f, op(f, TN_OP_LESS_EQUAL, TN_LOGICAL, x, y, 0)), TN_COMPUTE);
  result(f, to_float(f, op(f, TN_OP_AND, TN_LOGICAL, less, below, 0)), TN_COMPUTE);
  result(f, to_float(f, op(f, TN_OP_OR, TN_LOGICAL, less, below, 0)), TN_COMPUTE);
  result(f, to_float(f, op(f, TN_OP_NOT, TN_LOGICAL, less, 0, 0)), TN_COMPUTE);
  result(f, op(f, TN_OP_SELECT, TN_FLOAT, less, x, binary(f, TN_OP_MUL, y, y)), TN_COMPUTE);
  result(f, to_float(f, op(f, TN_OP_IS_FINITE, TN_LOGICAL, op(f, TN_OP_STOP, TN_FLOAT, root, 0, 0), 0, 0)), TN_COMPUTE);
}
static void put_ints(formula* f, int32_t x) {
  const int32_t four = constant(f, TN_FLOAT, 4), row = op(f, TN_OP_ROW, TN_INT, 0, 0, 0);
  const int32_t column = op(f, TN_OP_COLUMN, TN_INT, 0, 0, 0);
  const int32_t whole = op(f, TN_OP_CAST, TN_INT, binary(f, TN_OP_MUL, x, four), 0, 0);
  const int32_t divisor = op(f, TN_OP_ADD, TN_INT, column, constant(f, TN_INT, 1), 0);
  result(f, to_float(f, whole), TN_COMPUTE);
  result(f, to_float(f, op(f, TN_OP_FLOOR_DIV, TN_INT, whole, divisor, 0)), TN_COMPUTE);
  result(f, to_float(f, op(f, TN_OP_MOD, TN_INT, whole, divisor, 0)), TN_COMPUTE);
  result(f, binary(f, TN_OP_MUL, x, to_float(f, row)), TN_COMPUTE);
  result(f, binary(f, TN_OP_MUL, x, to_float(f, column)), TN_COMPUTE);
}
static tn_status lower_opcodes(const tn_attributes* attributes, const tn_builder* builder) {
  formula f = {0};
  tn_ref outputs[64];
  const tn_ref operands[] = {builder->input(builder->self, 0, 0), builder->input(builder->self, 1, 0),
                             builder->parameter(builder->self, 0)};
  const int32_t in = operand(&f, TN_FULL, TN_FLOAT), y = operand(&f, TN_FULL, TN_FLOAT);
  const int32_t x = binary(&f, TN_OP_MUL, in, operand(&f, TN_PER_COLUMN, TN_FLOAT));
  const int32_t positive = binary(&f, TN_OP_ADD, unary(&f, TN_OP_ABS, x), constant(&f, TN_FLOAT, 0.5));
  int32_t draw;
  (void)attributes;
  put_floats(&f, x, y, positive);
  put_truths(&f, x, y);
  put_ints(&f, x);
  result(&f, binary(&f, TN_OP_MUL, x, unary(&f, TN_OP_STOP, x)), TN_COMPUTE);
  draw = op(&f, TN_OP_UNIFORM, TN_FLOAT, 0, 0, 0);
  f.list[draw].extent = TN_FULL;
  result(&f, draw, TN_COMPUTE);
  result(&f, binary(&f, TN_OP_MUL, x, x), TN_COMPUTE);
  result(&f, x, TN_COMPUTE);
  result(&f, y, TN_COMPUTE);
  apply(&f, builder, 1, operands, outputs, NULL);
  for (uint32_t i = 0; i < OPCODES; ++i) builder->output(builder->self, i, outputs[i]);
  return builder->status(builder->self);
}
static const tn_layer_description opcodes_description = {.size = sizeof(tn_layer_description),
                                                         .role = TN_ROLE_LAYER,
                                                         .type = "museum.opcodes",
                                                         .doc = "every opcode once",
                                                         .inputs_count = 2,
                                                         .outputs_count = 1,
                                                         .inputs = xy_ports,
                                                         .outputs = values_ports,
                                                         .parameters_count = 1,
                                                         .parameters = weight,
                                                         .state_version = 1};
static const tn_layer_type opcodes = {
    .size = sizeof(tn_layer_type), .description = &opcodes_description, .plan = plan_opcodes, .lower = lower_opcodes};

/* ---- museum.shapes: of the matrix m [2, 2] of a sample: row 1 of m m / 2 with a zero in front, and that times a
 * constant matrix */

static tn_status plan_shapes(const tn_planner* planner) {
  const tn_spec* in = planner->inputs[0];
  tn_dim dims[2];
  if (!is_matrix(in) || in->dims[1].offset != 4) return bad_input(planner, "in");
  dims[0] = in->dims[0];
  dims[1] = tn_dim_constant(6);
  return output_of(planner, 0, 2, dims);
}
static tn_status lower_shapes(const tn_attributes* attributes, const tn_builder* builder) {
  void* const self = builder->self;
  static const double matrix[] = {1, 2, 0, 0, 1, 0, 3, 0, 1};
  static const int32_t axes[] = {0, 2, 1};
  const tn_ref in = builder->input(self, 0, 0);
  const tn_spec* spec = builder->spec(self, in);
  tn_dim dims[3], three[2];
  tn_spec constant_spec;
  tn_ref m, product, row, parts[2];
  (void)attributes;
  if (spec == NULL) return builder->status(self);
  dims[0] = spec->dims[0];
  dims[1] = dims[2] = tn_dim_constant(2);
  three[0] = three[1] = tn_dim_constant(3);
  constant_spec = spec_of(TN_COMPUTE, 2, three);
  m = builder->view(self, in, dims, 3);
  product = builder->gemm(self, m, builder->transpose(self, m, axes, 3), TN_TRANSPOSE_B, 0.5);
  row = builder->pad(self, builder->slice(self, product, 1, 1, 1), 2, 1, 0);
  dims[1] = tn_dim_constant(3);
  parts[0] = builder->view(self, row, dims, 2);
  parts[1] = builder->gemm(self, parts[0], builder->constant(self, &constant_spec, matrix), 0, 1);
  builder->output(self, 0, builder->concat(self, parts, 2, 1));
  return builder->status(self);
}
static const tn_layer_description shapes_description = {.size = sizeof(tn_layer_description),
                                                        .role = TN_ROLE_LAYER,
                                                        .type = "museum.shapes",
                                                        .doc = "products, views, parts",
                                                        .inputs_count = 1,
                                                        .outputs_count = 1,
                                                        .inputs = in_ports,
                                                        .outputs = out_ports,
                                                        .state_version = 1};
static const tn_layer_type shapes = {
    .size = sizeof(tn_layer_type), .description = &shapes_description, .plan = plan_shapes, .lower = lower_shapes};

/* ---- museum.pair: weight * x and x + 1; museum.twice: an expansion to two pairs, weight of the second * (x + 1) */

static tn_status plan_pair(const tn_planner* planner) {
  const tn_spec* in = planner->inputs[0];
  if (in->storage == TN_CSR || in->rank != 2) return bad_input(planner, "in");
  if (parameter_of(planner, "weight", 1, &in->dims[1], 0.5, 0) < 0) return TN_INVALID;
  if (output_of(planner, 1, 2, in->dims) != TN_OK) return TN_INVALID;
  return output_of(planner, 0, 2, in->dims);
}
static tn_status lower_pair(const tn_attributes* attributes, const tn_builder* builder) {
  formula f = {0}, own = {0};
  tn_ref outputs[2];
  const tn_ref operands[] = {builder->input(builder->self, 0, 0), builder->parameter(builder->self, 0)};
  const int32_t x = operand(&f, TN_FULL, TN_FLOAT), w = operand(&f, TN_PER_COLUMN, TN_FLOAT);
  const double by = tn_float(attributes, "by", 1);
  int32_t slope[2], in[4];
  result(&f, binary(&f, TN_OP_MUL, x, w), TN_COMPUTE);
  result(&f, binary(&f, TN_OP_ADD, x, constant(&f, TN_FLOAT, by)), TN_COMPUTE);
  /* The gradient in the author's own words: x, weight, the outputs, then their gradients. */
  in[0] = operand(&own, TN_FULL, TN_FLOAT);
  in[1] = operand(&own, TN_PER_COLUMN, TN_FLOAT);
  in[2] = operand(&own, TN_FULL, TN_FLOAT);
  in[3] = operand(&own, TN_FULL, TN_FLOAT);
  slope[0] = operand(&own, TN_FULL, TN_FLOAT);
  slope[1] = operand(&own, TN_FULL, TN_FLOAT);
  result(&own, binary(&own, TN_OP_ADD, binary(&own, TN_OP_MUL, slope[0], in[1]), slope[1]), TN_COMPUTE);
  result(&own, reduced(&own, TN_OP_REDUCE_SUM, TN_PER_COLUMN, binary(&own, TN_OP_MUL, slope[0], in[0])), TN_COMPUTE);
  apply(&f, builder, 1, operands, outputs, &own);
  builder->output(builder->self, 0, outputs[0]);
  builder->output(builder->self, 1, outputs[1]);
  return builder->status(builder->self);
}
static const tn_attribute by = NUMBER("by", TN_ATTR_FLOAT, f, 1);
static const tn_attribute* const pair_attributes[] = {&by};
static const tn_layer_description pair_description = {.size = sizeof(tn_layer_description),
                                                      .role = TN_ROLE_LAYER,
                                                      .type = "museum.pair",
                                                      .doc = "weight * in and in + by",
                                                      .inputs_count = 1,
                                                      .outputs_count = 2,
                                                      .inputs = in_ports,
                                                      .outputs = two_ports,
                                                      .attributes_count = 1,
                                                      .parameters_count = 1,
                                                      .attributes = pair_attributes,
                                                      .parameters = weight,
                                                      .state_version = 1};
static const tn_layer_type pair = {
    .size = sizeof(tn_layer_type), .description = &pair_description, .plan = plan_pair, .lower = lower_pair};

static tn_status plan_twice(const tn_planner* planner) {
  if (!is_matrix(planner->inputs[0])) return bad_input(planner, "in");
  return output_of(planner, 0, 2, planner->inputs[0]->dims);
}
static tn_status expand_twice(const tn_expander* expander) {
  static const char* const names[] = {"by"};
  const tn_value values[] = {{TN_ATTR_FLOAT, 1, {.f = 3}}};
  tn_ref value = expander->input(expander->self, 0);
  tn_expansion_layer first = {.size = sizeof(tn_expansion_layer),
                              .inputs_count = 1,
                              .type = "museum.pair",
                              .suffix = "a",
                              .inputs = &value,
                              .attributes_count = 1,
                              .attribute_names = names,
                              .attribute_values = values};
  tn_expansion_layer second = first;
  tn_ref inner = expander->layer(expander->self, &first);
  value = expander->output_of(expander->self, inner, 1);
  second.suffix = "b";
  second.attributes_count = 0;
  inner = expander->layer(expander->self, &second);
  return expander->output(expander->self, 0, inner);
}
static const tn_layer_description twice_description = {.size = sizeof(tn_layer_description),
                                                       .role = TN_ROLE_LAYER,
                                                       .type = "museum.twice",
                                                       .doc = "two pairs",
                                                       .inputs_count = 1,
                                                       .outputs_count = 1,
                                                       .inputs = in_ports,
                                                       .outputs = out_ports,
                                                       .state_version = 1};
static const tn_layer_type twice = {
    .size = sizeof(tn_layer_type), .description = &twice_description, .plan = plan_twice, .expand = expand_twice};

/* ---- museum.total, a cost: the sum of (1 + i) * mean of the row of input i */

static tn_status plan_total(const tn_planner* planner) {
  for (uint32_t i = 0; i < planner->inputs_count; ++i)
    if (!is_matrix(planner->inputs[i])) return bad_input(planner, "in");
  return output_of(planner, 0, 1, planner->inputs[0]->dims);
}
static tn_status lower_total(const tn_attributes* attributes, const tn_builder* builder) {
  tn_ref total = -1, in = -1;
  (void)attributes;
  for (uint32_t i = 0; i < 8; ++i) {
    formula f = {0};
    tn_ref operands[2];
    int32_t sum, columns;
    const tn_spec* spec;
    if (i > 0 && builder->user == NULL) break;
    in = builder->input(builder->self, 0, i);
    spec = builder->spec(builder->self, in);
    if (spec == NULL) return builder->status(builder->self);
    columns = constant(&f, TN_FLOAT, (1.0 + i) / (double)spec->dims[1].offset);
    sum = reduced(&f, TN_OP_REDUCE_SUM, TN_PER_ROW, operand(&f, TN_FULL, TN_FLOAT));
    sum = binary(&f, TN_OP_MUL, sum, columns);
    operands[0] = in;
    operands[1] = total;
    if (total >= 0) sum = binary(&f, TN_OP_ADD, sum, operand(&f, TN_PER_ROW, TN_FLOAT));
    result(&f, sum, TN_COMPUTE);
    apply(&f, builder, 1, operands, &total, NULL);
    if (i + 1 >= (uint32_t)tn_int(attributes, "inputs", 1)) break;
  }
  builder->output(builder->self, 0, total);
  return builder->status(builder->self);
}
static const tn_attribute inputs = NUMBER("inputs", TN_ATTR_INT, i, 1);
static const tn_attribute* const total_attributes[] = {&inputs};
static const char total_user = 0;
static const tn_layer_description total_description = {.size = sizeof(tn_layer_description),
                                                       .role = TN_ROLE_COST,
                                                       .type = "museum.total",
                                                       .doc = "the sum of (1 + i) * mean of input i",
                                                       .inputs_count = 1,
                                                       .outputs_count = 1,
                                                       .inputs = many_ports,
                                                       .outputs = out_ports,
                                                       .attributes_count = 1,
                                                       .attributes = total_attributes,
                                                       .state_version = 1};
static const tn_layer_type total = {.size = sizeof(tn_layer_type),
                                    .description = &total_description,
                                    .plan = plan_total,
                                    .lower = lower_total,
                                    .user = (void*)(uintptr_t)&total_user};

/* ---- museum.mean, a metric: the mean over samples and columns, weighted by an optional input [samples, 1] */

static tn_status plan_mean(const tn_planner* planner) {
  if (!is_matrix(planner->inputs[0])) return bad_input(planner, "in");
  return planner->state(planner->self, 2);
}
static tn_status lower_mean(const tn_attributes* attributes, const tn_builder* builder) {
  formula f = {0};
  tn_ref outputs[2];
  const tn_ref operands[] = {builder->input(builder->self, 0, 0), builder->input(builder->self, 1, 0)};
  const int32_t x = operand(&f, TN_FULL, TN_FLOAT);
  const int32_t one = constant(&f, TN_FLOAT, 1);
  const int32_t share = operands[1] < 0 ? one : operand(&f, TN_PER_ROW, TN_FLOAT);
  const int32_t each = binary(&f, TN_OP_ADD, binary(&f, TN_OP_MUL, x, constant(&f, TN_FLOAT, 0)), share);
  (void)attributes;
  result(&f, reduced(&f, TN_OP_REDUCE_SUM, TN_SCALAR, binary(&f, TN_OP_MUL, x, each)), TN_F64);
  result(&f, reduced(&f, TN_OP_REDUCE_SUM, TN_SCALAR, each), TN_F64);
  apply(&f, builder, 1, operands, outputs, NULL);
  for (uint32_t i = 0; i < 2; ++i) builder->state(builder->self, i, outputs[i]);
  return builder->status(builder->self);
}
static tn_status finalize_mean(const tn_finalizer* finalizer) {
  finalizer->result(finalizer->self, "mean", finalizer->state[1] == 0 ? 0 : finalizer->state[0] / finalizer->state[1]);
  finalizer->result(finalizer->self, "weight", finalizer->state[1]);
  return TN_OK;
}
static const tn_layer_description mean_description = {.size = sizeof(tn_layer_description),
                                                      .role = TN_ROLE_METRIC,
                                                      .type = "museum.mean",
                                                      .doc = "a weighted mean",
                                                      .inputs_count = 2,
                                                      .inputs = metric_ports,
                                                      .state_version = 1};
static const tn_layer_type mean = {.size = sizeof(tn_layer_type),
                                   .description = &mean_description,
                                   .plan = plan_mean,
                                   .lower = lower_mean,
                                   .finalize = finalize_mean};

/* ---- museum.memory: out = in + carried, which the next minibatch gets; its buffers are the sum, the maximum, the mean
 * and the first of the numbers of steps, as the shards of a minibatch are merged */

static const char* const memory_buffers[] = {"sum", "max", "mean", "first"};
static tn_status plan_memory(const tn_planner* planner) {
  static const int32_t merges[] = {TN_MERGE_SUM, TN_MERGE_MAX, TN_MERGE_MEAN, TN_MERGE_FIRST};
  const tn_spec* in = planner->inputs[0];
  const tn_dim one = tn_dim_constant(1);
  const tn_spec number = spec_of(TN_COMPUTE, 1, &one);
  if (!is_matrix(in)) return bad_input(planner, "in");
  for (uint32_t i = 0; i < 4; ++i) {
    const tn_parameter buffer = {.size = sizeof(tn_parameter),
                                 .suffix = memory_buffers[i],
                                 .spec = &number,
                                 .initializer = {.kind = TN_INIT_CONSTANT, .a = i},
                                 .merge = merges[i]};
    if (planner->buffer(planner->self, &buffer) < 0) return TN_INVALID;
  }
  if (planner->carried(planner->self, in) < 0) return TN_INVALID;
  return output_of(planner, 0, 2, in->dims);
}
static tn_status lower_memory(const tn_attributes* attributes, const tn_builder* builder) {
  formula f = {0}, next = {0};
  tn_ref out;
  const tn_ref operands[] = {builder->input(builder->self, 0, 0), builder->carried(builder->self, 0)};
  const int32_t x = operand(&f, TN_FULL, TN_FLOAT);
  (void)attributes;
  result(&f, binary(&f, TN_OP_ADD, x, operand(&f, TN_FULL, TN_FLOAT)), TN_COMPUTE);
  apply(&f, builder, 1, operands, &out, NULL);
  builder->output(builder->self, 0, out);
  builder->carried_next(builder->self, 0, out);
  result(&next, binary(&next, TN_OP_ADD, operand(&next, TN_FULL, TN_FLOAT), constant(&next, TN_FLOAT, 1)), TN_COMPUTE);
  for (uint32_t i = 0; i < 4; ++i) {
    const tn_ref buffer = builder->buffer(builder->self, i);
    apply(&next, builder, 1, &buffer, &out, NULL);
    builder->buffer_next(builder->self, i, out);
  }
  return builder->status(builder->self);
}
static const tn_layer_description memory_description = {.size = sizeof(tn_layer_description),
                                                        .role = TN_ROLE_LAYER,
                                                        .type = "museum.memory",
                                                        .doc = "the sum of the inputs so far",
                                                        .inputs_count = 1,
                                                        .outputs_count = 1,
                                                        .inputs = in_ports,
                                                        .outputs = out_ports,
                                                        .parameters_count = 4,
                                                        .parameters = memory_buffers,
                                                        .state_version = 1};
static const tn_layer_type memory = {
    .size = sizeof(tn_layer_type), .description = &memory_description, .plan = plan_memory, .lower = lower_memory};

static const tn_layer_type* const layers[] = {&opcodes, &shapes, &pair, &twice, &total, &mean, &memory};
PLUGIN("museum.layers", "An exhibit: layers with recorded bodies", .layers_count = COUNT(layers), .layers = layers)

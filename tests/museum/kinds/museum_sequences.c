/* An exhibit in C: layers of sequences, sparse vectors and tables: each rule by which rows are made but that of
 * kernels, each operation over segments, gather and scatter. SPDX-License-Identifier: Apache-2.0 */
#include "layer.h"

static const tn_port in_port = PORT("in", 0), a_port = PORT("a", 0), b_port = PORT("b", 0), out_port = PORT("out", 0);
static const tn_port ids_port = PORT("ids", TN_PORT_INTEGER), any_port = PORT("any", TN_PORT_ANY);
static const tn_port sparse_port = PORT("in", TN_PORT_SPARSE), values_port = PORT("values", TN_PORT_VARIADIC);
static const tn_port* const in_ports[] = {&in_port};
static const tn_port* const any_ports[] = {&any_port};
static const tn_port* const ab_ports[] = {&a_port, &b_port};
static const tn_port* const ids_ports[] = {&ids_port};
static const tn_port* const sparse_ports[] = {&sparse_port};
static const tn_port* const out_ports[] = {&out_port};
static const tn_port* const values_ports[] = {&values_port};
static const char* const table_name[] = {"table"};

#define LAYER(name_, text, inputs_, outputs_, ...)                                               \
  static const tn_layer_description name_##_description = {.size = sizeof(tn_layer_description), \
                                                           .role = TN_ROLE_LAYER,                \
                                                           .type = "museum." #name_,             \
                                                           .doc = text,                          \
                                                           .inputs_count = COUNT(inputs_),       \
                                                           .outputs_count = COUNT(outputs_),     \
                                                           .inputs = inputs_,                    \
                                                           .outputs = outputs_,                  \
                                                           .state_version = 1,                   \
                                                           __VA_ARGS__};                         \
  static const tn_layer_type name_ = {.size = sizeof(tn_layer_type),                             \
                                      .description = &name_##_description,                       \
                                      .plan = plan_##name_,                                      \
                                      .lower = lower_##name_}

/* a + b of int64 values for each row, or a + by * b. */
static tn_ref int_sum(const tn_builder* builder, tn_ref a, tn_ref b, int64_t by) {
  formula f = {0};
  tn_ref out;
  const tn_ref operands[] = {a, b};
  const int32_t first = operand(&f, TN_PER_ROW, TN_INT), second = operand(&f, TN_PER_ROW, TN_INT);
  const int32_t step = op(&f, TN_OP_MUL, TN_INT, second, constant(&f, TN_INT, (double)by), 0);
  result(&f, op(&f, TN_OP_ADD, TN_INT, first, step, 0), TN_I64);
  apply(&f, builder, 1, operands, &out, NULL);
  return out;
}
/* a + b of [rows, columns]. */
static tn_ref float_sum(const tn_builder* builder, tn_ref a, tn_ref b) {
  formula f = {0};
  tn_ref out;
  const tn_ref operands[] = {a, b};
  const int32_t first = operand(&f, TN_FULL, TN_FLOAT);
  result(&f, binary(&f, TN_OP_ADD, first, operand(&f, TN_FULL, TN_FLOAT)), TN_COMPUTE);
  apply(&f, builder, 1, operands, &out, NULL);
  return out;
}
static tn_status plan_rows(const tn_planner* planner, int32_t rule, const tn_spec* b) {
  const tn_spec* a = planner->inputs[0];
  const tn_rows_rule of = {.size = sizeof(tn_rows_rule),
                           .rule = rule,
                           .a = a,
                           .b = b,
                           .window = rule == TN_ROWS_STRIDED ? 3 : 0,
                           .stride = rule == TN_ROWS_STRIDED ? 2 : 0,
                           .padding = 0,
                           .count = rule == TN_ROWS_FIRST ? 2 : 0};
  tn_dim dims[2];
  if (a->storage != TN_RAGGED || a->rank != 2) return bad_input(planner, "in");
  if (planner->rows(planner->self, &of, &dims[0]) < 0) return TN_INVALID;
  dims[1] = a->dims[1];
  return output_of(planner, 0, 2, dims);
}

/* ---- museum.first: the first two rows of each sequence; museum.strided: the first row of every window of 3, 2 apart
 */

static tn_ref picked(const tn_builder* builder, int64_t by) {
  void* const self = builder->self;
  const tn_ref in = builder->input(self, 0, 0);
  const tn_spec* spec = builder->spec(self, in);
  tn_ref begin;
  tn_dim rows;
  if (spec == NULL || builder->rows(self, 0, &rows) != TN_OK) return -1;
  begin = builder->segment(self, TN_SEGMENT_START, -1, &spec->dims[0], 0);
  begin = builder->segment(self, TN_SEGMENT_BROADCAST, begin, &rows, 0);
  return builder->gather(self, in,
                         int_sum(builder, begin, builder->segment(self, TN_SEGMENT_POSITION, -1, &rows, 0), by));
}
static tn_status plan_first(const tn_planner* planner) { return plan_rows(planner, TN_ROWS_FIRST, NULL); }
static tn_status lower_first(const tn_attributes* attributes, const tn_builder* builder) {
  (void)attributes;
  builder->output(builder->self, 0, picked(builder, 1));
  return builder->status(builder->self);
}
LAYER(first, "the first two rows of each sequence", in_ports, out_ports, .parameters_count = 0);

static tn_status plan_strided(const tn_planner* planner) { return plan_rows(planner, TN_ROWS_STRIDED, NULL); }
static tn_status lower_strided(const tn_attributes* attributes, const tn_builder* builder) {
  (void)attributes;
  builder->output(builder->self, 0, picked(builder, 2));
  return builder->status(builder->self);
}
LAYER(strided, "every second row that begins a window of 3", in_ports, out_ports, .parameters_count = 0);

/* ---- museum.joined: each sequence of a, then that of b */

static tn_ref placed(const tn_builder* builder, tn_ref value, tn_ref begin, const tn_dim* rows) {
  void* const self = builder->self;
  const tn_spec* spec = builder->spec(self, value);
  tn_ref start, position;
  if (spec == NULL) return -1;
  start = builder->segment(self, TN_SEGMENT_BROADCAST, begin, &spec->dims[0], 0);
  position = builder->segment(self, TN_SEGMENT_POSITION, -1, &spec->dims[0], 0);
  return builder->scatter_add(self, value, int_sum(builder, start, position, 1), rows);
}
static tn_status plan_joined(const tn_planner* planner) {
  return plan_rows(planner, TN_ROWS_CONCATENATED, planner->inputs[1]);
}
static tn_status lower_joined(const tn_attributes* attributes, const tn_builder* builder) {
  void* const self = builder->self;
  const tn_ref a = builder->input(self, 0, 0), b = builder->input(self, 1, 0);
  const tn_spec* spec = builder->spec(self, a);
  tn_dim rows;
  tn_ref begin, lengths;
  (void)attributes;
  if (spec == NULL || builder->rows(self, 0, &rows) != TN_OK) return builder->status(self);
  begin = builder->segment(self, TN_SEGMENT_START, -1, &rows, 0);
  lengths = builder->segment(self, TN_SEGMENT_LENGTH, -1, &spec->dims[0], 0);
  builder->output(self, 0,
                  float_sum(builder, placed(builder, a, begin, &rows),
                            placed(builder, b, int_sum(builder, begin, lengths, 1), &rows)));
  return builder->status(self);
}
LAYER(joined, "each sequence of a, then that of b", ab_ports, out_ports, .parameters_count = 0);

/* ---- museum.segments: of sequences [rows, 1]: sum and maximum of each; the sum at each row; the next row; ranks */

static tn_status plan_segments(const tn_planner* planner) {
  const tn_spec* in = planner->inputs[0];
  tn_dim dims[2];
  if (in->storage != TN_RAGGED || in->rank != 2 || in->dims[1].offset != 1) return bad_input(planner, "in");
  dims[1] = in->dims[1];
  for (uint32_t i = 0; i < 5; ++i) {
    dims[0] = i < 2 ? in->outer[0] : in->dims[0];
    if (output_of(planner, i, 2, dims) != TN_OK) return TN_INVALID;
  }
  return TN_OK;
}
static tn_status lower_segments(const tn_attributes* attributes, const tn_builder* builder) {
  void* const self = builder->self;
  const tn_ref in = builder->input(self, 0, 0);
  const tn_spec* spec = builder->spec(self, in);
  formula f = {0};
  tn_ref outputs[5], flat;
  (void)attributes;
  if (spec == NULL) return builder->status(self);
  outputs[0] = builder->segment(self, TN_SEGMENT_SUM, in, &spec->dims[0], 0);
  outputs[1] = builder->segment(self, TN_SEGMENT_MAX, in, &spec->dims[0], 0);
  outputs[2] = builder->segment(self, TN_SEGMENT_BROADCAST, outputs[0], &spec->dims[0], 0);
  outputs[3] = builder->segment(self, TN_SEGMENT_SHIFT, in, &spec->dims[0], 1);
  flat = builder->segment(self, TN_SEGMENT_RANK, builder->view(self, in, spec->dims, 1), &spec->dims[0], 0);
  flat = builder->view(self, flat, spec->dims, 2);
  result(&f, op(&f, TN_OP_CAST, TN_FLOAT, operand(&f, TN_FULL, TN_INT), 0, 0), TN_COMPUTE);
  apply(&f, builder, 1, &flat, &outputs[4], NULL);
  for (uint32_t i = 0; i < 5; ++i) builder->output(self, i, outputs[i]);
  return builder->status(self);
}
LAYER(segments, "what segments make of [rows, 1]", in_ports, values_ports, .parameters_count = 0);

/* ---- museum.inner: of sequences of sequences, the rows of each outer one summed over the inner ones */

static tn_status plan_inner(const tn_planner* planner) {
  const tn_spec* in = planner->inputs[0];
  tn_dim dims[2];
  if (in->storage != TN_RAGGED || in->rank != 2 || in->levels != 2) return bad_input(planner, "any");
  dims[0] = in->outer[1];
  dims[1] = in->dims[1];
  return output_of(planner, 0, 2, dims);
}
static tn_status lower_inner(const tn_attributes* attributes, const tn_builder* builder) {
  void* const self = builder->self;
  tn_ref value = builder->input(self, 0, 0);
  const tn_spec* spec = builder->spec(self, value);
  (void)attributes;
  if (spec == NULL) return builder->status(self);
  value = builder->segment(self, TN_SEGMENT_SUM, value, &spec->dims[0], 0);
  builder->output(self, 0, builder->segment(self, TN_SEGMENT_SUM, value, &spec->outer[0], 0));
  return builder->status(self);
}
LAYER(inner, "sums over two levels", any_ports, out_ports, .parameters_count = 0);

/* ---- museum.lookup: rows of a table [5, 2] by ids; museum.sparse: the same, weighted, summed over a sparse vector */

static int32_t plan_table(const tn_planner* planner, int64_t height, tn_dim* dims, uint32_t flags) {
  dims[0] = tn_dim_constant(height);
  dims[1] = tn_dim_constant(2);
  return parameter_of(planner, "table", 2, dims, 0.5, flags);
}
static tn_status plan_lookup(const tn_planner* planner) {
  const tn_spec* in = planner->inputs[0];
  tn_dim dims[2];
  if (in->rank != 1 || planner->index_limit(planner->self, 0, 5) != TN_OK) return bad_input(planner, "ids");
  if (plan_table(planner, 5, dims, TN_PARAMETER_SPARSE_GRADIENT) < 0) return TN_INVALID;
  dims[0] = in->dims[0];
  return output_of(planner, 0, 2, dims);
}
static tn_status lower_lookup(const tn_attributes* attributes, const tn_builder* builder) {
  void* const self = builder->self;
  (void)attributes;
  builder->output(self, 0, builder->gather(self, builder->parameter(self, 0), builder->input(self, 0, 0)));
  return builder->status(self);
}
LAYER(lookup, "rows of a table", ids_ports, out_ports, .parameters_count = 1, .parameters = table_name);

static tn_status plan_sparse(const tn_planner* planner) {
  const tn_spec* in = planner->inputs[0];
  tn_dim dims[2];
  if (in->storage != TN_CSR || in->rank != 2) return bad_input(planner, "in");
  if (plan_table(planner, in->dims[1].offset, dims, 0) < 0) return TN_INVALID;
  dims[0] = in->dims[0];
  return output_of(planner, 0, 2, dims);
}
static tn_status lower_sparse(const tn_attributes* attributes, const tn_builder* builder) {
  void* const self = builder->self;
  const tn_ref ids = builder->input(self, 0, 0), weights = builder->weights(self, ids);
  const tn_spec* spec = builder->spec(self, ids);
  tn_ref rows = builder->gather(self, builder->parameter(self, 0), ids);
  (void)attributes;
  if (spec == NULL) return builder->status(self);
  if (weights >= 0) {
    formula f = {0};
    const tn_ref operands[] = {rows, weights};
    const int32_t row = operand(&f, TN_FULL, TN_FLOAT);
    result(&f, binary(&f, TN_OP_MUL, row, operand(&f, TN_PER_ROW, TN_FLOAT)), TN_COMPUTE);
    apply(&f, builder, 1, operands, &rows, NULL);
  }
  builder->output(self, 0, builder->segment(self, TN_SEGMENT_SUM, rows, &spec->dims[0], 0));
  return builder->status(self);
}
LAYER(sparse, "a sparse vector times a table", sparse_ports, out_ports, .parameters_count = 1,
      .parameters = table_name);

static const tn_layer_type* const layers[] = {&first, &strided, &joined, &segments, &inner, &lookup, &sparse};
PLUGIN("museum.sequences", "An exhibit: layers of sequences and sparse vectors", .layers_count = COUNT(layers),
       .layers = layers)

/* An exhibit in C: a layer whose second version migrates what files of the first hold, whose weight and shift were half
 * of what they are now, and which had no mark. SPDX-License-Identifier: Apache-2.0 */
#include "layer.h"

#ifndef STATE_VERSION /* that of the files to migrate is 1 */
#define STATE_VERSION 2
#endif

static const tn_port in_port = PORT("in", 0), out_port = PORT("out", 0);
static const tn_port* const in_ports[] = {&in_port};
static const tn_port* const out_ports[] = {&out_port};
static const char* const weight[] = {"weight"};
static const tn_attribute shift = NUMBER("shift", TN_ATTR_FLOAT, f, 1), mark = NUMBER("mark", TN_ATTR_INT, i, 0);
static const tn_attribute* const attributes_list[] = {&shift, &mark};

static tn_status plan(const tn_planner* planner) {
  const tn_spec* in = planner->inputs[0];
  if (!is_matrix(in)) return bad_input(planner, "in");
  if (parameter_of(planner, "weight", 1, &in->dims[1], 2, 0) < 0) return TN_INVALID;
  return output_of(planner, 0, 2, in->dims);
}
static tn_status lower(const tn_attributes* attributes, const tn_builder* builder) {
  formula f = {0};
  tn_ref out;
  const tn_ref operands[] = {builder->input(builder->self, 0, 0), builder->parameter(builder->self, 0)};
  const int32_t x = operand(&f, TN_FULL, TN_FLOAT);
  const int32_t product = binary(&f, TN_OP_MUL, x, operand(&f, TN_PER_COLUMN, TN_FLOAT));
  const double sum = tn_float(attributes, "shift", 0) + (double)tn_int(attributes, "mark", 0);
  result(&f, binary(&f, TN_OP_ADD, product, constant(&f, TN_FLOAT, sum)), TN_COMPUTE);
  apply(&f, builder, 1, operands, &out, NULL);
  builder->output(builder->self, 0, out);
  return builder->status(builder->self);
}

/* Doubles weight and shift by way of other names, and sets the mark. */
static tn_status migrate(const tn_migration* migration) {
  void* const self = migration->self;
  tn_stored_tensor from = {.size = sizeof(tn_stored_tensor)}, absent = {.size = sizeof(tn_stored_tensor)}, to;
  float values[8];
  tn_value shifted = {TN_ATTR_FLOAT, 1, {.f = 0}};
  const tn_value marked = {TN_ATTR_INT, 1, {.i = 7}};
  if (migration->state_version != 1) return tn_fail(migration->errors, TN_INVALID, NULL, "is of an unknown version");
  for (uint32_t i = 0; i < migration->attributes_count; ++i)
    if (strcmp(migration->attribute_names[i], "shift") == 0) shifted.as.f = 2 * migration->attribute_values[i].as.f;
  migration->rename_attribute(self, "shift", "before");
  migration->set_attribute(self, "shift", &shifted);
  migration->remove_attribute(self, "before");
  migration->set_attribute(self, "mark", &marked);
  migration->rename_tensor(self, "weight", "half");
  if (migration->tensor(self, "weight", &absent) != TN_NOT_FOUND) return TN_INVALID;
  if (migration->tensor(self, "half", &from) != TN_OK) return TN_INVALID;
  if (from.rank != 1 || from.shape[0] > 8)
    return tn_fail(migration->errors, TN_INVALID, "weight", "has more than 8 elements");
  to = from;
  for (int64_t i = 0; i < from.shape[0]; ++i) values[i] = 2 * from.values[i];
  to.values = values;
  migration->set_tensor(self, "weight", &to);
  return migration->remove_tensor(self, "half");
}
static const tn_migrate table = {.size = sizeof(tn_migrate), .oldest = 1, .migrate = migrate};
static const void* extension(void* user, const char* id) {
  (void)user;
  return strcmp(id, TN_MIGRATE) == 0 ? &table : NULL;
}

static const tn_layer_description description = {.size = sizeof(tn_layer_description),
                                                 .role = TN_ROLE_LAYER,
                                                 .type = "museum.migrated",
                                                 .doc = "weight * in + shift + mark",
                                                 .inputs_count = 1,
                                                 .outputs_count = 1,
                                                 .inputs = in_ports,
                                                 .outputs = out_ports,
                                                 .attributes_count = STATE_VERSION,
                                                 .parameters_count = 1,
                                                 .attributes = attributes_list,
                                                 .parameters = weight,
                                                 .state_version = STATE_VERSION};
static const tn_layer_type layer = {
    .size = sizeof(tn_layer_type), .description = &description, .plan = plan, .lower = lower, .extension = extension};
static const tn_layer_type* const layers[] = {&layer};
PLUGIN("museum.migrated", "An exhibit: a migration", .layers_count = 1, .layers = layers)

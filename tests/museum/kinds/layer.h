/* What the layers of the museum share: their descriptions, specs and programs. SPDX-License-Identifier: Apache-2.0 */
#ifndef MUSEUM_LAYER_H
#define MUSEUM_LAYER_H

#include <tenon/plugin.h>

#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))
#define PORT(name_, flags_) \
  { .size = sizeof(tn_port), .flags = (flags_), .name = (name_), .doc = "a value" }
#define NUMBER(name_, kind_, member, value)                                                         \
  {                                                                                                 \
    .size = sizeof(tn_attribute), .kind = (kind_), .name = (name_), .doc = "a number", .initial = { \
      (kind_),                                                                                      \
      1,                                                                                            \
      {.member = (value)}                                                                           \
    }                                                                                               \
  }
#define PLUGIN(id_, text, ...)                                                    \
  static const tn_plugin plugin = {.size = sizeof(tn_plugin),                     \
                                   .abi = {TN_ABI_MAJOR, TN_ABI_MINOR, SINCE, 0}, \
                                   .id = (id_),                                   \
                                   .version = "1.0.0",                            \
                                   .doc = (text),                                 \
                                   .license = "Apache-2.0",                       \
                                   .isa = "",                                     \
                                   __VA_ARGS__};                                  \
  const tn_plugin* tenon_plugin(void) { return &plugin; }
#ifndef SINCE /* the minor version of the oldest host */
#define SINCE 2
#endif

static inline tn_spec spec_of(tn_dtype dtype, int32_t rank, const tn_dim* dims) {
  const tn_spec spec = {.size = sizeof(tn_spec), .dtype = dtype, .storage = TN_DENSE, .rank = rank, .dims = dims};
  return spec;
}
/* Declares a parameter of floats; -1 on failure. */
static inline int32_t parameter_of(const tn_planner* planner, const char* suffix, int32_t rank, const tn_dim* dims,
                                   double first, uint32_t flags) {
  const tn_spec spec = spec_of(TN_COMPUTE, rank, dims);
  const tn_parameter parameter = {.size = sizeof(tn_parameter),
                                  .flags = flags,
                                  .suffix = suffix,
                                  .spec = &spec,
                                  .initializer = {.kind = TN_INIT_CONSTANT, .a = first}};
  return planner->parameter(planner->self, &parameter);
}
static inline tn_status output_of(const tn_planner* planner, uint32_t port, int32_t rank, const tn_dim* dims) {
  const tn_spec spec = spec_of(TN_COMPUTE, rank, dims);
  return planner->output(planner->self, port, &spec);
}
/* Whether the input is [samples, columns] with a constant number of columns. */
static inline int is_matrix(const tn_spec* in) {
  return in->storage == TN_DENSE && in->rank == 2 && in->dims[1].symbol == TN_SYMBOL_NONE;
}
static inline tn_status bad_input(const tn_planner* planner, const char* port) {
  return tn_fail(planner->errors, TN_INVALID, port, "has not the shape of this exhibit");
}

/* A program in the making. */
typedef struct formula {
  uint32_t count, inputs_count, outputs_count;
  tn_instruction list[160];
  tn_program_input inputs[16];
  tn_program_output outputs[64];
} formula;

static inline int32_t op(formula* f, int code, int kind, int32_t a, int32_t b, int32_t c) {
  const tn_instruction in = {(uint16_t)code, (uint8_t)kind, 0, a, b, c, 0};
  f->list[f->count] = in;
  return (int32_t)f->count++;
}
static inline int32_t binary(formula* f, int code, int32_t a, int32_t b) { return op(f, code, TN_FLOAT, a, b, 0); }
static inline int32_t unary(formula* f, int code, int32_t a) { return op(f, code, TN_FLOAT, a, 0, 0); }
static inline int32_t operand(formula* f, int extent, int kind) {
  const tn_program_input in = {(uint8_t)extent, (uint8_t)kind, 0};
  f->inputs[f->inputs_count] = in;
  return op(f, TN_OP_INPUT, kind, (int32_t)f->inputs_count++, 0, 0);
}
static inline int32_t constant(formula* f, int kind, double number) {
  const int32_t value = op(f, TN_OP_CONSTANT, kind, 0, 0, 0);
  f->list[value].number = number;
  return value;
}
static inline int32_t reduced(formula* f, int code, int extent, int32_t a) {
  const int32_t value = unary(f, code, a);
  f->list[value].extent = (uint8_t)extent;
  return value;
}
static inline void result(formula* f, int32_t value, tn_dtype dtype) {
  const tn_program_output out = {value, dtype};
  f->outputs[f->outputs_count++] = out;
}
static inline tn_program program_of(const formula* f) {
  const tn_program program = {.size = sizeof(tn_program),
                              .instructions_count = f->count,
                              .instructions = f->list,
                              .inputs_count = f->inputs_count,
                              .outputs_count = f->outputs_count,
                              .inputs = f->inputs,
                              .outputs = f->outputs};
  return program;
}
/* Records the program; gradient: null, or the author's own. */
static inline void apply(const formula* f, const tn_builder* builder, int32_t leading, const tn_ref* operands,
                         tn_ref* outputs, const formula* gradient) {
  const tn_program program = program_of(f);
  tn_program own;
  tn_pointwise call = {.size = sizeof(tn_pointwise), .leading = leading, .program = &program, .inputs = operands};
  if (gradient != NULL) {
    own = program_of(gradient);
    call.gradient = &own;
  }
  for (uint32_t i = 0; i < f->outputs_count; ++i) outputs[i] = -1;
  builder->pointwise(builder->self, &call, outputs);
}

#endif

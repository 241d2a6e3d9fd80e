/* Programs of the museum's devices: one value after the other, each in full and as doubles, in the workspace. Ints are
 * exact below 2^53. SPDX-License-Identifier: Apache-2.0 */
#ifndef MUSEUM_PROGRAM_H
#define MUSEUM_PROGRAM_H

#include <math.h>

#include "elements.h"

enum { OPERANDS = 256 }; /* the most of a program */

typedef struct program {
  tn_dim rows, columns;
  uint32_t instructions_count, inputs_count, outputs_count;
  int32_t ints_are_short;
  const tn_instruction* instructions;
  const tn_program_output* outputs;
  const tn_dtype *input_types, *output_types;
  const uint8_t *extents, *indexed_inputs, *indexed_outputs;
} program;

/* A run: the grid, the operands, the values, and of row-sparse updates the ids of the rows. */
typedef struct grid {
  const program* of;
  int64_t rows, columns;
  double* values; /* [instructions, rows * columns] */
  const uint8_t* const* inputs;
  uint8_t* const* outputs;
  const uint8_t* requests;
  const tn_random* random;
  const int64_t* ids;
} grid;

static inline double* value_at(const grid* g, int32_t number, int64_t row, int64_t column) {
  const uint8_t extent = g->of->extents[number];
  const int64_t width = extent & TN_PER_COLUMN ? g->columns : 1;
  return g->values + number * g->rows * g->columns + (extent & TN_PER_ROW ? row * width : 0) +
         (extent & TN_PER_COLUMN ? column : 0);
}
/* Where the operand of a program holds an element of the grid. */
static inline int64_t place(const grid* g, uint8_t extent, int indexed, int64_t row, int64_t column) {
  const int64_t width = extent & TN_PER_COLUMN ? g->columns : 1;
  const int64_t line = indexed && (extent & TN_PER_ROW) ? g->ids[row] : row;
  return (extent & TN_PER_ROW ? line * width : 0) + (extent & TN_PER_COLUMN ? column : 0);
}

static inline double least(double a, double b) { return isnan(a) || isnan(b) ? NAN : a < b ? a : b; }
static inline double to_int(double a, int is_short) {
  const double lowest = is_short ? -2147483648.0 : -9223372036854775808.0;
  const double highest = is_short ? 2147483647.0 : 9223372036854774784.0;
  if (isnan(a)) return 0;
  return a < lowest ? lowest : a > highest ? highest : trunc(a);
}

/* Philox4x32-10, as program.h of the SDK defines draws. */
static inline double uniform(const tn_random* random, uint32_t draw, uint64_t element) {
  uint32_t x[4] = {(uint32_t)(element / 4), draw, (uint32_t)random->step, (uint32_t)(random->step >> 32)};
  uint32_t key[2] = {(uint32_t)random->seed, (uint32_t)(random->seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = (uint64_t)0xD2511F53u * x[0], b = (uint64_t)0xCD9E8D57u * x[2];
    const uint32_t now[4] = {(uint32_t)(b >> 32) ^ x[1] ^ key[0], (uint32_t)b, (uint32_t)(a >> 32) ^ x[3] ^ key[1],
                             (uint32_t)a};
    memcpy(x, now, sizeof x);
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return (x[element % 4] >> 8) / 16777216.0;
}

static inline double number_of(const tn_instruction* in, double a, double b) {
  switch (in->op) {
    case TN_OP_ADD:
      return a + b;
    case TN_OP_SUB:
      return a - b;
    case TN_OP_MUL:
      return a * b;
    case TN_OP_DIV:
      return a / b;
    case TN_OP_MIN:
      return least(a, b);
    case TN_OP_MAX:
      return -least(-a, -b);
    case TN_OP_NEG:
      return -a;
    case TN_OP_ABS:
      return fabs(a);
    case TN_OP_FLOOR:
      return floor(a);
    case TN_OP_ROUND:
      return nearbyint(a);
    case TN_OP_SIGN:
      return a > 0 ? 1 : a < 0 ? -1 : a;
    case TN_OP_FLOOR_DIV:
      return b == 0 ? 0 : floor(a / b);
    case TN_OP_MOD:
      return b == 0 ? 0 : a - b * floor(a / b);
    default:
      return NAN;
  }
}
static inline double function_of(const tn_instruction* in, double a, double b) {
  switch (in->op) {
    case TN_OP_SQRT:
      return sqrt(a);
    case TN_OP_EXP:
      return exp(a);
    case TN_OP_EXPM1:
      return expm1(a);
    case TN_OP_LOG:
      return log(a);
    case TN_OP_LOG1P:
      return log1p(a);
    case TN_OP_TANH:
      return tanh(a);
    case TN_OP_ERF:
      return erf(a);
    case TN_OP_SIN:
      return sin(a);
    case TN_OP_COS:
      return cos(a);
    case TN_OP_POW:
      return pow(a, b);
    default:
      return NAN;
  }
}
static inline int truth_of(const tn_instruction* in, double a, double b) {
  switch (in->op) {
    case TN_OP_EQUAL:
      return a == b;
    case TN_OP_LESS:
      return a < b;
    case TN_OP_LESS_EQUAL:
      return a <= b;
    case TN_OP_AND:
      return a != 0 && b != 0;
    case TN_OP_OR:
      return a != 0 || b != 0;
    case TN_OP_NOT:
      return a == 0;
    default:
      return isfinite(a);
  }
}

/* Whole numbers of the width of the compute type wrap around. */
static inline double wrapped(const program* of, const tn_instruction* in, double value) {
  if (in->kind != TN_INT || !of->ints_are_short) return value;
  return (double)(int32_t)(uint32_t)(int64_t)value;
}

static inline double applied(const grid* g, const tn_instruction* in, double a, double b, double c) {
  const uint8_t of_class = tn_op_info(in->op).op_class;
  if (in->op == TN_OP_STOP) return a;
  if (in->op == TN_OP_CAST)
    return in->kind == TN_FLOAT ? a : in->kind == TN_INT ? to_int(a, g->of->ints_are_short) : a != 0;
  if (in->op == TN_OP_SELECT) return a != 0 ? b : c;
  if (of_class == TN_CLASS_ARITHMETIC) return wrapped(g->of, in, number_of(in, a, b));
  return of_class == TN_CLASS_MATH ? function_of(in, a, b) : truth_of(in, a, b);
}

static inline void reduce(const grid* g, int32_t number, const tn_instruction* in) {
  const uint8_t to = g->of->extents[number], from = g->of->extents[in->a];
  const double lowest = in->kind == TN_INT ? to_int(-INFINITY, g->of->ints_are_short) : -INFINITY;
  const double highest = in->kind == TN_INT ? to_int(INFINITY, g->of->ints_are_short) : INFINITY;
  const double first = in->op == TN_OP_REDUCE_SUM ? 0 : in->op == TN_OP_REDUCE_MAX ? lowest : highest;
  const int64_t count = (to & TN_PER_ROW ? g->rows : 1) * (to & TN_PER_COLUMN ? g->columns : 1);
  for (int64_t i = 0; i < count; ++i) value_at(g, number, 0, 0)[i] = first;
  for (int64_t r = 0; r < (from & TN_PER_ROW ? g->rows : 1); ++r)
    for (int64_t c = 0; c < (from & TN_PER_COLUMN ? g->columns : 1); ++c) {
      double *sum = value_at(g, number, r, c), a = *value_at(g, in->a, r, c);
      *sum = in->op == TN_OP_REDUCE_SUM ? *sum + a : in->op == TN_OP_REDUCE_MAX ? -least(-*sum, -a) : least(*sum, a);
    }
}

static inline double element(const grid* g, int32_t number, int64_t r, int64_t c) {
  const tn_instruction* in = &g->of->instructions[number];
  const int operands = tn_op_info(in->op).operands;
  const uint8_t extent = g->of->extents[number];
  double value;
  switch (in->op) {
    case TN_OP_INPUT:
      value = load(g->of->input_types[in->a], g->inputs[in->a], place(g, extent, g->of->indexed_inputs[in->a], r, c));
      if (in->kind == TN_LOGICAL) return value != 0;
      return in->kind == TN_INT ? to_int(value, g->of->ints_are_short) : value;
    case TN_OP_CONSTANT:
      if (in->kind == TN_LOGICAL) return in->number != 0;
      return in->kind == TN_INT ? to_int(in->number, g->of->ints_are_short) : in->number;
    case TN_OP_ROW:
      return (double)r;
    case TN_OP_COLUMN:
      return (double)c;
    case TN_OP_UNIFORM:
      return uniform(g->random, (uint32_t)in->a, (uint64_t)place(g, extent, 0, r, c));
    default:
      return applied(g, in, *value_at(g, in->a, r, c), operands > 1 ? *value_at(g, in->b, r, c) : 0,
                     operands > 2 ? *value_at(g, in->c, r, c) : 0);
  }
}

static inline void run_program(const grid* g) {
  for (int32_t i = 0; i < (int32_t)g->of->instructions_count; ++i) {
    const uint8_t extent = g->of->extents[i];
    if (tn_op_info(g->of->instructions[i].op).op_class == TN_CLASS_REDUCTION) {
      reduce(g, i, &g->of->instructions[i]);
      continue;
    }
    for (int64_t r = 0; r < (extent & TN_PER_ROW ? g->rows : 1); ++r)
      for (int64_t c = 0; c < (extent & TN_PER_COLUMN ? g->columns : 1); ++c)
        *value_at(g, i, r, c) = element(g, i, r, c);
  }
  for (uint32_t o = 0; o < g->of->outputs_count; ++o) {
    const int32_t number = g->of->outputs[o].value;
    const uint8_t extent = g->of->extents[number];
    for (int64_t r = 0; r < (extent & TN_PER_ROW ? g->rows : 1); ++r)
      for (int64_t c = 0; c < (extent & TN_PER_COLUMN ? g->columns : 1); ++c)
        put(g->of->output_types[o], g->outputs[o], place(g, extent, g->of->indexed_outputs[o], r, c),
            *value_at(g, number, r, c), g->requests[o]);
  }
}

static inline tn_status check_program(const tn_errors* errors, const tn_pointwise_site* site) {
  const tn_program* from = site->program;
  if (from->inputs_count > OPERANDS || from->outputs_count > OPERANDS)
    return tn_fail(errors, TN_UNSUPPORTED, NULL, "programs with so many operands");
  for (uint32_t i = 0; i < from->instructions_count; ++i)
    if (tn_op_info(from->instructions[i].op).op_class == TN_CLASS_NONE)
      return tn_fail(errors, TN_UNSUPPORTED, NULL, "programs with an unknown opcode");
  for (uint32_t i = 0; i < from->inputs_count; ++i)
    if (!is_element(site->inputs[i]))
      return tn_fail(errors, TN_UNSUPPORTED, NULL, "programs with inputs of an unknown type");
  for (uint32_t i = 0; i < from->outputs_count; ++i)
    if (!is_element(site->outputs[i]))
      return tn_fail(errors, TN_UNSUPPORTED, NULL, "programs with outputs of an unknown type");
  return TN_OK;
}
static inline uint64_t program_bytes(const tn_program* from) {
  return from->instructions_count * (sizeof(tn_instruction) + 1) + from->inputs_count * (sizeof(tn_dtype) + 1) +
         from->outputs_count * (sizeof(tn_program_output) + sizeof(tn_dtype) + 1) + (uint64_t)7 * 8;
}
/* Copies a program behind a binding. indexed: null if no operand is indexed. */
static inline program kept_program(uint8_t* at, const tn_pointwise_site* site, const uint8_t* indexed_inputs,
                                   const uint8_t* indexed_outputs) {
  const tn_program* from = site->program;
  static const uint8_t none[OPERANDS];
  program result = {site->rows,
                    site->columns,
                    from->instructions_count,
                    from->inputs_count,
                    from->outputs_count,
                    tn_dtype_bytes(site->compute) == 4,
                    NULL,
                    NULL,
                    NULL,
                    NULL,
                    NULL,
                    NULL,
                    NULL};
  result.instructions =
      (const tn_instruction*)keep(&at, from->instructions, from->instructions_count * sizeof(tn_instruction));
  result.outputs = (const tn_program_output*)keep(&at, from->outputs, from->outputs_count * sizeof(tn_program_output));
  result.input_types = (const tn_dtype*)keep(&at, site->inputs, from->inputs_count * sizeof(tn_dtype));
  result.output_types = (const tn_dtype*)keep(&at, site->outputs, from->outputs_count * sizeof(tn_dtype));
  result.extents = (const uint8_t*)keep(&at, site->extents, from->instructions_count);
  result.indexed_inputs = (const uint8_t*)keep(&at, indexed_inputs == NULL ? none : indexed_inputs, from->inputs_count);
  result.indexed_outputs =
      (const uint8_t*)keep(&at, indexed_outputs == NULL ? none : indexed_outputs, from->outputs_count);
  return result;
}
static inline uint64_t values_bytes(const tn_pointwise_site* site) {
  return site->program->instructions_count * (uint64_t)(site->rows.bound * site->columns.bound) * sizeof(double);
}

#endif

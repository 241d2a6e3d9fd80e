/* Tenon SDK: what each opcode of a program means, in fp64: the definition that devices are compared with, for devices
 * that compute one element after the other, and for tests. SPDX-License-Identifier: MIT
 *
 * All since 0.4; nothing here is asked of the host. Ints are exact below 2^53, and do not wrap around. */
#ifndef TENON_OP_VALUE_H
#define TENON_OP_VALUE_H

#include <math.h>
#include <tenon/program.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The value of an instruction with opcode `op` and kind `kind`, from those of its operands; those that it lacks are
 * ignored. Of a reduction: of the elements so far, a, and one more, b. NaN of an opcode without operands, and of one
 * that is not of these headers. */
static inline double tn_op_value(uint16_t op, uint8_t kind, double a, double b, double c) {
  const double most = 9.2e18; /* a little less than the highest int */
  switch (op) {
    case TN_OP_CAST:
      if (kind == TN_FLOAT) return a;
      if (kind == TN_LOGICAL) return a != 0;
      return isnan(a) ? 0 : trunc(fmin(fmax(a, -most), most));
    case TN_OP_STOP:
      return a;
    case TN_OP_ADD:
    case TN_OP_REDUCE_SUM:
      return a + b;
    case TN_OP_SUB:
      return a - b;
    case TN_OP_MUL:
      return a * b;
    case TN_OP_DIV:
      return a / b;
    case TN_OP_MIN:
    case TN_OP_REDUCE_MIN:
      if (isnan(a) || isnan(b)) return (double)NAN;
      return b < a ? b : a;
    case TN_OP_MAX:
    case TN_OP_REDUCE_MAX:
      if (isnan(a) || isnan(b)) return (double)NAN;
      return a < b ? b : a;
    case TN_OP_NEG:
      return -a;
    case TN_OP_ABS:
      return fabs(a);
    case TN_OP_FLOOR:
      return floor(a);
    case TN_OP_ROUND:
      return nearbyint(a);
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
    case TN_OP_SELECT:
      return a != 0 ? b : c;
    case TN_OP_IS_FINITE:
      return isfinite(a) != 0;
    case TN_OP_SIGN:
      if (a < 0) return -1;
      return a > 0 ? 1 : a;
    case TN_OP_FLOOR_DIV:
      return b == 0 ? 0 : floor(a / b);
    case TN_OP_MOD:
      return b == 0 ? 0 : a - b * floor(a / b);
    default:
      return (double)NAN;
  }
}

/* The value of a reduction over no elements, from which it goes on by tn_op_value; of ints as of floats. */
static inline double tn_op_start(uint16_t op) {
  if (op == TN_OP_REDUCE_SUM) return 0;
  return op == TN_OP_REDUCE_MAX ? (double)-INFINITY : (double)INFINITY;
}

#ifdef __cplusplus
}
#endif

#endif

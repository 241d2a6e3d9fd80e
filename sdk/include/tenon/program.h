/* Tenon SDK: pointwise programs, formulas written once. SPDX-License-Identifier: MIT
 *
 * A program runs over a grid of R rows and C columns. It is a list of instructions in single-assignment form:
 * instruction i makes value i, and its operands a, b, c are numbers of earlier values. Every value has an extent:
 *
 *   TN_SCALAR       one value for the grid
 *   TN_PER_COLUMN   C values, the same for every row      (a bias, a scale)
 *   TN_PER_ROW      R values, the same for every column   (a label, a row's sum)
 *   TN_FULL         R * C values
 *
 * An elementwise instruction has the smallest extent that covers those of its operands (PER_ROW with PER_COLUMN
 * gives FULL). A reduction folds an operand to the smaller extent that it names, and later instructions read
 * the result as any other value: reductions end stages, so softmax, layer_norm and cross_entropy are one program.
 *
 * Every value has a kind: float (computed in the machine's compute type), int or bool. Operands of one
 * instruction have one kind unless noted; TN_OP_CAST converts.
 *
 * A draw (TN_OP_UNIFORM) gives the same numbers whenever it is evaluated within one step, in the gradient as in the
 * program, on every device and in every compute type: multiples of 2^-24 from Philox4x32-10 (Salmon et al., "Parallel
 * random numbers: as easy as 1, 2, 3", 2011) with the seed as key, its low 32 bits first, and the counter {low 32 bits
 * of e / 4, draw, low 32 bits of step, high 32 bits of step}, of which element e, counted row by row, takes the high 24
 * bits of word e % 4: tn_uniform of tenon/philox.h. The step is tn_random.step. The host gives every draw of a machine
 * a number of its own; an author counts from 0 in each program, and equal numbers are equal draws.
 *
 * Sums are accumulated in an order that follows from R and C alone, never from the number of threads.
 *
 * The host derives the gradient of a program. Every opcode with a float result has a derivative in its float operands;
 * that of FLOOR, ROUND, SIGN and STOP is 0 everywhere. Opcodes with an int or bool result have none (comparisons,
 * IS_FINITE, FLOOR_DIV, MOD, logic, a cast to int or bool): no gradient flows through them.
 *
 * Ints have as many bits as floats of the compute type, 32 or 64. Arithmetic on ints wraps around. No opcode traps.
 */
#ifndef TENON_PROGRAM_H
#define TENON_PROGRAM_H

#include <tenon/base.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TN_SCALAR = 0, TN_PER_COLUMN = 1, TN_PER_ROW = 2, TN_FULL = 3 };
enum { TN_FLOAT = 0, TN_INT = 1, TN_LOGICAL = 2 };

/* The set of opcodes of these headers: raised with every new opcode. A device states the set that it knows. */
#define TN_OPSET 1

/* Opcodes. Which operands, kinds and result each has is in the table of tn_op_info below. */
enum {
  TN_OP_INPUT = 1,    /* program input number a */
  TN_OP_CONSTANT = 2, /* `number`, of any kind, converted as by CAST */
  TN_OP_ROW = 3,      /* int, PER_ROW: the row's index, from 0 */
  TN_OP_COLUMN = 4,   /* int, PER_COLUMN: the column's index, from 0 */
  /* a in another kind: float to int truncates towards 0, gives the lowest or highest int outside of their range, and 0
   * for NaN; anything to bool is a != 0 */
  TN_OP_CAST = 5,
  TN_OP_STOP = 6,    /* a, through which no derivative flows */
  TN_OP_UNIFORM = 7, /* float: draw number a of the program, `extent` independent numbers in [0, 1), as defined above */

  TN_OP_ADD = 10,
  TN_OP_SUB = 11,
  TN_OP_MUL = 12,
  TN_OP_DIV = 13,
  TN_OP_MIN = 14, /* of MIN and MAX the derivative goes to a where both are equal; NaN if a or b is NaN */
  TN_OP_MAX = 15,
  TN_OP_NEG = 16,
  TN_OP_ABS = 17,   /* derivative 0 at 0 */
  TN_OP_FLOOR = 18, /* float: the largest whole number that is not above a; derivative 0 */
  TN_OP_ROUND = 19, /* float: the nearest whole number, halves to the even one; derivative 0 */

  TN_OP_SQRT = 20,
  TN_OP_EXP = 21,
  TN_OP_EXPM1 = 22, /* exp(a) - 1 */
  TN_OP_LOG = 23,
  TN_OP_LOG1P = 24, /* log(1 + a) */
  TN_OP_TANH = 25,
  TN_OP_ERF = 26,
  TN_OP_SIN = 27, /* of radians, however large; NaN of an infinite a */
  TN_OP_COS = 28,
  /* a to the power b, with the special cases of C's pow (C99, F.9.4.4): 1 if b is 0 or a is 1, whatever the other is;
   * NaN if a is negative and b not a whole number. Its derivative in b is 0 where a is 0 or negative, that in a is 0
   * where b is 0. */
  TN_OP_POW = 29,

  TN_OP_EQUAL = 30, /* comparisons: derivative 0 */
  TN_OP_LESS = 31,
  TN_OP_LESS_EQUAL = 32,
  TN_OP_AND = 33,
  TN_OP_OR = 34,
  TN_OP_NOT = 35,
  TN_OP_SELECT = 36,    /* a (bool) ? b : c */
  TN_OP_IS_FINITE = 37, /* bool: whether the float a is neither infinite nor NaN */

  TN_OP_REDUCE_SUM = 40, /* reductions of a to `extent` */
  /* over no elements: -infinity, +infinity, of ints the lowest, the highest; NaN if any element is; the derivative is
   * shared between equals */
  TN_OP_REDUCE_MAX = 41,
  TN_OP_REDUCE_MIN = 42,

  TN_OP_SIGN = 50, /* -1 if a is negative, 1 if it is positive; else a itself: 0 or NaN. Derivative 0 */
  /* Ints: FLOOR_DIV is the largest int that is not above a / b, MOD is a - b * FLOOR_DIV(a, b), which has the sign of
   * b, as in Python. Both are 0 where b is 0. The lowest int divided by -1 wraps around to itself, and MOD is 0. */
  TN_OP_FLOOR_DIV = 51,
  TN_OP_MOD = 52
};

/* Classes of opcodes. */
enum {
  TN_CLASS_NONE = 0,       /* not an opcode of these headers */
  TN_CLASS_SOURCE = 1,     /* an input, a constant, an index */
  TN_CLASS_RANDOM = 2,     /* draws random numbers */
  TN_CLASS_CONVERSION = 3, /* operand a itself, in another kind or without its derivative */
  TN_CLASS_ARITHMETIC = 4,
  TN_CLASS_MATH = 5,       /* functions of floats */
  TN_CLASS_COMPARISON = 6, /* of numbers: gives a bool */
  TN_CLASS_LOGIC = 7,
  TN_CLASS_SELECTION = 8, /* operand a is a bool and selects b or c */
  TN_CLASS_REDUCTION = 9  /* of operand a to the extent that the instruction states */
};

/* Kind of an opcode's result, if it is not one of TN_FLOAT, TN_INT, TN_LOGICAL. */
enum {
  TN_KIND_OF_OPERANDS = -1, /* that of the operands; TN_CLASS_SELECTION: of b and c */
  TN_KIND_STATED = -2       /* that which the instruction states */
};

/* One row of the table of opcodes. Rows do not cross between host and plugin: each side reads the table of the headers
 * that it was compiled with. */
typedef struct tn_opcode {
  uint16_t op;      /* TN_OP_... */
  int8_t operands;  /* how many of a, b, c are numbers of earlier values: 0 to 3; TN_CLASS_NONE: -1 */
  uint8_t op_class; /* TN_CLASS_... */
  uint8_t accepts;  /* kinds of the operands, of TN_CLASS_SELECTION those of b and c: bits 1 << TN_FLOAT ... */
  int8_t result;    /* kind of the result: TN_FLOAT ..., TN_KIND_... */
  uint16_t opset;   /* the first TN_OPSET that has it */
  const char* name; /* for messages: "floor_div" */
} tn_opcode;

/* Returns the row of opcode `op`. A number that is not an opcode of these headers gets a row with TN_CLASS_NONE, -1
 * operands and the name "unknown". The host refuses a program with an opcode that is newer than the opset of the
 * device's table; a device that meets a number which it does not know answers TN_UNSUPPORTED. */
static inline tn_opcode tn_op_info(uint32_t op) {
  enum {
    floats = 1 << TN_FLOAT,
    numbers = 1 << TN_FLOAT | 1 << TN_INT,
    bools = 1 << TN_LOGICAL,
    ints = 1 << TN_INT,
    any = 1 << TN_FLOAT | 1 << TN_INT | 1 << TN_LOGICAL,
    same = TN_KIND_OF_OPERANDS,
    stated = TN_KIND_STATED
  };
  /* Row i is opcode i. Numbers that are not used yet have an empty row, which a new opcode replaces; row 0 also stands
   * for numbers after the table. */
  static const tn_opcode rows[] = {
      {0, -1, TN_CLASS_NONE, 0, stated, 0, "unknown"},
      {TN_OP_INPUT, 0, TN_CLASS_SOURCE, 0, stated, 1, "input"},
      {TN_OP_CONSTANT, 0, TN_CLASS_SOURCE, 0, stated, 1, "constant"},
      {TN_OP_ROW, 0, TN_CLASS_SOURCE, 0, TN_INT, 1, "row"},
      {TN_OP_COLUMN, 0, TN_CLASS_SOURCE, 0, TN_INT, 1, "column"},
      {TN_OP_CAST, 1, TN_CLASS_CONVERSION, any, stated, 1, "cast"},
      {TN_OP_STOP, 1, TN_CLASS_CONVERSION, any, same, 1, "stop"},
      {TN_OP_UNIFORM, 0, TN_CLASS_RANDOM, 0, TN_FLOAT, 1, "uniform"},
      {0, -1, TN_CLASS_NONE, 0, stated, 0, "unknown"},
      {0, -1, TN_CLASS_NONE, 0, stated, 0, "unknown"},
      {TN_OP_ADD, 2, TN_CLASS_ARITHMETIC, numbers, same, 1, "add"},
      {TN_OP_SUB, 2, TN_CLASS_ARITHMETIC, numbers, same, 1, "sub"},
      {TN_OP_MUL, 2, TN_CLASS_ARITHMETIC, numbers, same, 1, "mul"},
      {TN_OP_DIV, 2, TN_CLASS_ARITHMETIC, floats, same, 1, "div"},
      {TN_OP_MIN, 2, TN_CLASS_ARITHMETIC, numbers, same, 1, "min"},
      {TN_OP_MAX, 2, TN_CLASS_ARITHMETIC, numbers, same, 1, "max"},
      {TN_OP_NEG, 1, TN_CLASS_ARITHMETIC, numbers, same, 1, "neg"},
      {TN_OP_ABS, 1, TN_CLASS_ARITHMETIC, numbers, same, 1, "abs"},
      {TN_OP_FLOOR, 1, TN_CLASS_ARITHMETIC, floats, same, 1, "floor"},
      {TN_OP_ROUND, 1, TN_CLASS_ARITHMETIC, floats, same, 1, "round"},
      {TN_OP_SQRT, 1, TN_CLASS_MATH, floats, same, 1, "sqrt"},
      {TN_OP_EXP, 1, TN_CLASS_MATH, floats, same, 1, "exp"},
      {TN_OP_EXPM1, 1, TN_CLASS_MATH, floats, same, 1, "expm1"},
      {TN_OP_LOG, 1, TN_CLASS_MATH, floats, same, 1, "log"},
      {TN_OP_LOG1P, 1, TN_CLASS_MATH, floats, same, 1, "log1p"},
      {TN_OP_TANH, 1, TN_CLASS_MATH, floats, same, 1, "tanh"},
      {TN_OP_ERF, 1, TN_CLASS_MATH, floats, same, 1, "erf"},
      {TN_OP_SIN, 1, TN_CLASS_MATH, floats, same, 1, "sin"},
      {TN_OP_COS, 1, TN_CLASS_MATH, floats, same, 1, "cos"},
      {TN_OP_POW, 2, TN_CLASS_MATH, floats, same, 1, "pow"},
      {TN_OP_EQUAL, 2, TN_CLASS_COMPARISON, numbers, TN_LOGICAL, 1, "equal"},
      {TN_OP_LESS, 2, TN_CLASS_COMPARISON, numbers, TN_LOGICAL, 1, "less"},
      {TN_OP_LESS_EQUAL, 2, TN_CLASS_COMPARISON, numbers, TN_LOGICAL, 1, "less_equal"},
      {TN_OP_AND, 2, TN_CLASS_LOGIC, bools, same, 1, "and"},
      {TN_OP_OR, 2, TN_CLASS_LOGIC, bools, same, 1, "or"},
      {TN_OP_NOT, 1, TN_CLASS_LOGIC, bools, same, 1, "not"},
      {TN_OP_SELECT, 3, TN_CLASS_SELECTION, any, same, 1, "select"},
      {TN_OP_IS_FINITE, 1, TN_CLASS_COMPARISON, floats, TN_LOGICAL, 1, "is_finite"},
      {0, -1, TN_CLASS_NONE, 0, stated, 0, "unknown"},
      {0, -1, TN_CLASS_NONE, 0, stated, 0, "unknown"},
      {TN_OP_REDUCE_SUM, 1, TN_CLASS_REDUCTION, floats, same, 1, "reduce_sum"},
      {TN_OP_REDUCE_MAX, 1, TN_CLASS_REDUCTION, numbers, same, 1, "reduce_max"},
      {TN_OP_REDUCE_MIN, 1, TN_CLASS_REDUCTION, numbers, same, 1, "reduce_min"},
      {0, -1, TN_CLASS_NONE, 0, stated, 0, "unknown"},
      {0, -1, TN_CLASS_NONE, 0, stated, 0, "unknown"},
      {0, -1, TN_CLASS_NONE, 0, stated, 0, "unknown"},
      {0, -1, TN_CLASS_NONE, 0, stated, 0, "unknown"},
      {0, -1, TN_CLASS_NONE, 0, stated, 0, "unknown"},
      {0, -1, TN_CLASS_NONE, 0, stated, 0, "unknown"},
      {0, -1, TN_CLASS_NONE, 0, stated, 0, "unknown"},
      {TN_OP_SIGN, 1, TN_CLASS_ARITHMETIC, numbers, same, 1, "sign"},
      {TN_OP_FLOOR_DIV, 2, TN_CLASS_ARITHMETIC, ints, same, 1, "floor_div"},
      {TN_OP_MOD, 2, TN_CLASS_ARITHMETIC, ints, same, 1, "mod"},
  };
  return rows[op < sizeof rows / sizeof rows[0] ? op : 0];
}

/* One instruction. Frozen. */
typedef struct tn_instruction {
  uint16_t op;
  uint8_t kind;   /* TN_FLOAT ...: kind of the result */
  uint8_t extent; /* reductions: target extent; TN_OP_INPUT and others: ignored, the host derives it */
  int32_t a, b, c;
  double number;
} tn_instruction;

/* One input. Frozen. Any element type is accepted and converted to `kind` when it is loaded. */
typedef struct tn_program_input {
  uint8_t extent;
  uint8_t kind;
  uint16_t reserved;
} tn_program_input;

/* One output: value number `value`, stored as dtype with the value's own extent. Frozen. */
typedef struct tn_program_output {
  int32_t value;
  tn_dtype dtype; /* TN_COMPUTE: the machine's compute type */
} tn_program_output;

/* A program. The arrays are borrowed as long as the struct; the host copies what it keeps. */
typedef struct tn_program {
  uint32_t size;
  uint32_t instructions_count;
  const tn_instruction* instructions;
  uint32_t inputs_count;
  uint32_t outputs_count;
  const tn_program_input* inputs;
  const tn_program_output* outputs;
} tn_program;

#ifdef __cplusplus
}
#endif
#endif

/* The plugin interface: the value of every constant, in pure C. Built plugins contain these numbers: lines may be
 * added, but must not be changed. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>
#include <tenon/draft/comm.h>
#include <tenon/draft/numbers.h>
#include <tenon/draft/records.h>
#include <tenon/plugin.h>

#define IS(name, value) static_assert((name) == (value), #name)

/* tenon/base.h */
IS(TN_OK, 0);
IS(TN_INVALID, 1);
IS(TN_MISUSE, 2);
IS(TN_NOT_FOUND, 3);
IS(TN_UNSUPPORTED, 4);
IS(TN_BAD_DATA, 5);
IS(TN_BAD_CONFIG, 6);
IS(TN_OUT_OF_MEMORY, 7);
IS(TN_IO, 8);
IS(TN_REFUSED, 9);
IS(TN_NEED_CAPACITY, 10);
IS(TN_END, 11);
IS(TN_CANCELLED, 12);
IS(TN_NOT_KEPT, 13);
IS(TN_PLUGIN_FAULT, 14);
IS(TN_INTERNAL, 15);
IS(TN_TRAIT_OWN_THREADS, 1);
IS(TN_TRAIT_HOST_CALLBACK, 2);
IS(TN_TRAIT_CAPTURABLE, 4);
IS(TN_TRAIT_NONDETERMINISTIC, 8);
IS(TN_TRAIT_HOST_SIZES, 16);
IS(TN_TRAIT_BATCH_VARIANT, 32);
IS(TN_TRAIT_ANY_ALIGNMENT, 64);
IS(TN_TRAIT_PORTABLE, 128);
IS(TN_TRAIT_BLOCKING, 256);
IS(TN_COMM_SURVIVES, 1);
IS(TN_COMM_AUTHENTICATED, 2);
IS(TN_COMM_ENCRYPTED, 4);
IS(TN_COMM_ONE_PER_PROCESS, 8);
IS(TN_COMM_DONE, 0);
IS(TN_COMM_LOST, 1);
IS(TN_COMM_WOKEN, 2);
IS(TN_COMM_RETURNED, 3);
IS(TN_NUMBERS_EXEMPT, 1);
IS(TN_NUMBERS_NOT_ZERO, 2);
IS(TN_NUMBERS_WEIGHTED, 4);
IS(TN_NUMBERS_LABELLED, 8);
IS(TN_SHARED_ONE_AT_A_TIME, 1);
IS(TN_SHARED_PER_STREAM, 2);
IS(TN_COMPUTE, 0);
IS(TN_I8, 67584);
IS(TN_I16, 69632);
IS(TN_I32, 73728);
IS(TN_I64, 81920);
IS(TN_U8, 67585);
IS(TN_U16, 69633);
IS(TN_U32, 73729);
IS(TN_F16, 69634);
IS(TN_F32, 73730);
IS(TN_F64, 81922);
IS(TN_BF16, 69636);
IS(TN_BOOL, 67590);

/* tenon/tensor.h */
IS(TN_SYMBOL_NONE, 0);
IS(TN_SYMBOL_SAMPLES, 1);
IS(TN_SYMBOL_FIRST_RAGGED, 16);
IS(TN_DENSE, 0);
IS(TN_ROW_SPARSE, 1);
IS(TN_RAGGED, 2);
IS(TN_CSR, 3);

/* tenon/window.h */
IS(TN_MAX_SPACE, 3);
IS(TN_CONV_RESULTS, 0);
IS(TN_CONV_IMAGES, 1);
IS(TN_CONV_WEIGHTS, 2);
IS(TN_POOL_SUM, 0);
IS(TN_POOL_SPREAD, 1);
IS(TN_POOL_MAX, 2);
IS(TN_POOL_SCATTER, 3);
IS(TN_POOL_TAKE, 4);
IS(TN_RESIZE_LINEAR, 1);
IS(TN_RESIZE_TRANSPOSED, 2);

/* tenon/attribute.h */
IS(TN_ATTR_BOOL, 1);
IS(TN_ATTR_INT, 2);
IS(TN_ATTR_FLOAT, 3);
IS(TN_ATTR_STRING, 4);
IS(TN_ATTR_INTS, 5);
IS(TN_ATTR_FLOATS, 6);
IS(TN_ATTR_STRINGS, 7);
IS(TN_ATTR_REQUIRED, 1);

/* tenon/program.h */
IS(TN_SCALAR, 0);
IS(TN_PER_COLUMN, 1);
IS(TN_PER_ROW, 2);
IS(TN_FULL, 3);
IS(TN_FLOAT, 0);
IS(TN_INT, 1);
IS(TN_LOGICAL, 2);
IS(TN_OP_INPUT, 1);
IS(TN_OP_CONSTANT, 2);
IS(TN_OP_ROW, 3);
IS(TN_OP_COLUMN, 4);
IS(TN_OP_CAST, 5);
IS(TN_OP_STOP, 6);
IS(TN_OP_UNIFORM, 7);
IS(TN_OP_ADD, 10);
IS(TN_OP_SUB, 11);
IS(TN_OP_MUL, 12);
IS(TN_OP_DIV, 13);
IS(TN_OP_MIN, 14);
IS(TN_OP_MAX, 15);
IS(TN_OP_NEG, 16);
IS(TN_OP_ABS, 17);
IS(TN_OP_FLOOR, 18);
IS(TN_OP_ROUND, 19);
IS(TN_OP_SQRT, 20);
IS(TN_OP_EXP, 21);
IS(TN_OP_EXPM1, 22);
IS(TN_OP_LOG, 23);
IS(TN_OP_LOG1P, 24);
IS(TN_OP_TANH, 25);
IS(TN_OP_ERF, 26);
IS(TN_OP_SIN, 27);
IS(TN_OP_COS, 28);
IS(TN_OP_POW, 29);
IS(TN_OP_EQUAL, 30);
IS(TN_OP_LESS, 31);
IS(TN_OP_LESS_EQUAL, 32);
IS(TN_OP_AND, 33);
IS(TN_OP_OR, 34);
IS(TN_OP_NOT, 35);
IS(TN_OP_SELECT, 36);
IS(TN_OP_IS_FINITE, 37);
IS(TN_OP_REDUCE_SUM, 40);
IS(TN_OP_REDUCE_MAX, 41);
IS(TN_OP_REDUCE_MIN, 42);
IS(TN_OP_SIGN, 50);
IS(TN_OP_FLOOR_DIV, 51);
IS(TN_OP_MOD, 52);
IS(TN_CLASS_NONE, 0);
IS(TN_CLASS_SOURCE, 1);
IS(TN_CLASS_RANDOM, 2);
IS(TN_CLASS_CONVERSION, 3);
IS(TN_CLASS_ARITHMETIC, 4);
IS(TN_CLASS_MATH, 5);
IS(TN_CLASS_COMPARISON, 6);
IS(TN_CLASS_LOGIC, 7);
IS(TN_CLASS_SELECTION, 8);
IS(TN_CLASS_REDUCTION, 9);
IS(TN_KIND_OF_OPERANDS, -1);
IS(TN_KIND_STATED, -2);

/* tenon/services.h */
IS(TN_REQUEST_NONE, 0);
IS(TN_REQUEST_WRITE, 1);
IS(TN_REQUEST_ADD, 2);

/* tenon/builder.h */
IS(TN_TRANSPOSE_A, 1);
IS(TN_TRANSPOSE_B, 2);
IS(TN_SCAN_REVERSE, 1);

/* tenon/layer.h */
IS(TN_PORT_OPTIONAL, 1);
IS(TN_PORT_VARIADIC, 2);
IS(TN_PORT_INTEGER, 4);
IS(TN_PORT_ANY, 8);
IS(TN_INIT_CONSTANT, 0);
IS(TN_INIT_UNIFORM, 1);
IS(TN_INIT_NORMAL, 2);
IS(TN_PARAMETER_SPARSE_GRADIENT, 1);
IS(TN_ROLE_LAYER, 0);
IS(TN_ROLE_COST, 1);
IS(TN_ROLE_METRIC, 2);

/* tenon/kernel.h */
IS(TN_FORWARD, 0);
IS(TN_BACKWARD, 1);

/* tenon/updater.h */
IS(TN_SCALAR_LEARNING_RATE, 0);
IS(TN_SCALAR_STEP, 1);
IS(TN_SCALAR_RATE_MULTIPLIER, 2);
IS(TN_SCALAR_DECAY_MULTIPLIER, 3);
IS(TN_GRAIN_ELEMENT, 0);
IS(TN_GRAIN_ROW, 1);
IS(TN_GRAIN_TENSOR, 2);

/* tenon/device.h */
IS(TN_COPY_TO_DEVICE, 0);
IS(TN_COPY_TO_HOST, 1);
IS(TN_COPY_ON_DEVICE, 2);

/* The opcodes; a new one needs a row here. */
static const tn_opcode kOpcodes[] = {
    {TN_OP_INPUT, 0, TN_CLASS_SOURCE, 0, TN_KIND_STATED, 1, "input"},
    {TN_OP_CONSTANT, 0, TN_CLASS_SOURCE, 0, TN_KIND_STATED, 1, "constant"},
    {TN_OP_ROW, 0, TN_CLASS_SOURCE, 0, TN_INT, 1, "row"},
    {TN_OP_COLUMN, 0, TN_CLASS_SOURCE, 0, TN_INT, 1, "column"},
    {TN_OP_CAST, 1, TN_CLASS_CONVERSION, 7, TN_KIND_STATED, 1, "cast"},
    {TN_OP_STOP, 1, TN_CLASS_CONVERSION, 7, TN_KIND_OF_OPERANDS, 1, "stop"},
    {TN_OP_UNIFORM, 0, TN_CLASS_RANDOM, 0, TN_FLOAT, 1, "uniform"},
    {TN_OP_ADD, 2, TN_CLASS_ARITHMETIC, 3, TN_KIND_OF_OPERANDS, 1, "add"},
    {TN_OP_SUB, 2, TN_CLASS_ARITHMETIC, 3, TN_KIND_OF_OPERANDS, 1, "sub"},
    {TN_OP_MUL, 2, TN_CLASS_ARITHMETIC, 3, TN_KIND_OF_OPERANDS, 1, "mul"},
    {TN_OP_DIV, 2, TN_CLASS_ARITHMETIC, 1, TN_KIND_OF_OPERANDS, 1, "div"},
    {TN_OP_MIN, 2, TN_CLASS_ARITHMETIC, 3, TN_KIND_OF_OPERANDS, 1, "min"},
    {TN_OP_MAX, 2, TN_CLASS_ARITHMETIC, 3, TN_KIND_OF_OPERANDS, 1, "max"},
    {TN_OP_NEG, 1, TN_CLASS_ARITHMETIC, 3, TN_KIND_OF_OPERANDS, 1, "neg"},
    {TN_OP_ABS, 1, TN_CLASS_ARITHMETIC, 3, TN_KIND_OF_OPERANDS, 1, "abs"},
    {TN_OP_FLOOR, 1, TN_CLASS_ARITHMETIC, 1, TN_KIND_OF_OPERANDS, 1, "floor"},
    {TN_OP_ROUND, 1, TN_CLASS_ARITHMETIC, 1, TN_KIND_OF_OPERANDS, 1, "round"},
    {TN_OP_SQRT, 1, TN_CLASS_MATH, 1, TN_KIND_OF_OPERANDS, 1, "sqrt"},
    {TN_OP_EXP, 1, TN_CLASS_MATH, 1, TN_KIND_OF_OPERANDS, 1, "exp"},
    {TN_OP_EXPM1, 1, TN_CLASS_MATH, 1, TN_KIND_OF_OPERANDS, 1, "expm1"},
    {TN_OP_LOG, 1, TN_CLASS_MATH, 1, TN_KIND_OF_OPERANDS, 1, "log"},
    {TN_OP_LOG1P, 1, TN_CLASS_MATH, 1, TN_KIND_OF_OPERANDS, 1, "log1p"},
    {TN_OP_TANH, 1, TN_CLASS_MATH, 1, TN_KIND_OF_OPERANDS, 1, "tanh"},
    {TN_OP_ERF, 1, TN_CLASS_MATH, 1, TN_KIND_OF_OPERANDS, 1, "erf"},
    {TN_OP_SIN, 1, TN_CLASS_MATH, 1, TN_KIND_OF_OPERANDS, 1, "sin"},
    {TN_OP_COS, 1, TN_CLASS_MATH, 1, TN_KIND_OF_OPERANDS, 1, "cos"},
    {TN_OP_POW, 2, TN_CLASS_MATH, 1, TN_KIND_OF_OPERANDS, 1, "pow"},
    {TN_OP_EQUAL, 2, TN_CLASS_COMPARISON, 3, TN_LOGICAL, 1, "equal"},
    {TN_OP_LESS, 2, TN_CLASS_COMPARISON, 3, TN_LOGICAL, 1, "less"},
    {TN_OP_LESS_EQUAL, 2, TN_CLASS_COMPARISON, 3, TN_LOGICAL, 1, "less_equal"},
    {TN_OP_AND, 2, TN_CLASS_LOGIC, 4, TN_KIND_OF_OPERANDS, 1, "and"},
    {TN_OP_OR, 2, TN_CLASS_LOGIC, 4, TN_KIND_OF_OPERANDS, 1, "or"},
    {TN_OP_NOT, 1, TN_CLASS_LOGIC, 4, TN_KIND_OF_OPERANDS, 1, "not"},
    {TN_OP_SELECT, 3, TN_CLASS_SELECTION, 7, TN_KIND_OF_OPERANDS, 1, "select"},
    {TN_OP_IS_FINITE, 1, TN_CLASS_COMPARISON, 1, TN_LOGICAL, 1, "is_finite"},
    {TN_OP_REDUCE_SUM, 1, TN_CLASS_REDUCTION, 1, TN_KIND_OF_OPERANDS, 1, "reduce_sum"},
    {TN_OP_REDUCE_MAX, 1, TN_CLASS_REDUCTION, 3, TN_KIND_OF_OPERANDS, 1, "reduce_max"},
    {TN_OP_REDUCE_MIN, 1, TN_CLASS_REDUCTION, 3, TN_KIND_OF_OPERANDS, 1, "reduce_min"},
    {TN_OP_SIGN, 1, TN_CLASS_ARITHMETIC, 3, TN_KIND_OF_OPERANDS, 1, "sign"},
    {TN_OP_FLOOR_DIV, 2, TN_CLASS_ARITHMETIC, 2, TN_KIND_OF_OPERANDS, 1, "floor_div"},
    {TN_OP_MOD, 2, TN_CLASS_ARITHMETIC, 2, TN_KIND_OF_OPERANDS, 1, "mod"},
};

/* Whether the table of opcodes differs from these rows. */
static int opcodes_differ(void) {
  const size_t count = sizeof kOpcodes / sizeof kOpcodes[0];
  size_t i, rows = 0;
  uint32_t op;
  for (i = 0; i < count; ++i) {
    const tn_opcode row = tn_op_info(kOpcodes[i].op);
    if (row.op != kOpcodes[i].op || row.operands != kOpcodes[i].operands || row.op_class != kOpcodes[i].op_class ||
        row.accepts != kOpcodes[i].accepts || row.result != kOpcodes[i].result || row.opset != kOpcodes[i].opset ||
        row.opset > TN_OPSET || strcmp(row.name, kOpcodes[i].name) != 0)
      return 1;
  }
  for (op = 0; op < 70000; ++op) {
    const tn_opcode row = tn_op_info(op);
    if (row.op_class != TN_CLASS_NONE)
      ++rows;
    else if (row.operands != -1 || row.accepts != 0 || strcmp(row.name, "unknown") != 0)
      return 1;
  }
  return rows != count || tn_op_info(UINT32_MAX).op_class != TN_CLASS_NONE;
}

/* Whether tn_data returns a wrong address. */
static int data_differs(void) {
  uint8_t bytes[8] = {0};
  tn_tensor tensor;
  memset(&tensor, 0, sizeof tensor);
  tensor.dl.byte_offset = 3;
  if (tn_data(NULL) != NULL || tn_data(&tensor) != NULL) return 1;
  tensor.dl.data = bytes;
  return tn_data(&tensor) != bytes + 3;
}

static int differ(const char* a, const char* b) { return strcmp(a, b) != 0; }

int main(void) {
  return differ(TN_ENTRY_NAME, "tenon_plugin") || differ(TN_NOTE_SECTION, ".note.tenon") ||
         differ(TN_NOTE_OWNER, "Tenon") || TN_NOTE_TYPE != 1 || TN_NOTE_LIMIT != 1048576 || TN_NOTE_RESERVED != 2 ||
         differ(TN_LOG, "tenon.log/1") || differ(TN_MEMORY, "tenon.memory/1") || differ(TN_PASS, "tenon.pass/1") ||
         differ(TN_RECORDS, "tenon.records/1") || differ(TN_LAYER_NUMBERS, "tenon.numbers/1") ||
         differ(TN_GEMM, "tenon.gemm/1") || differ(TN_CONV, "tenon.conv/1") || differ(TN_POOL, "tenon.pool/1") ||
         differ(TN_CONV_EPILOGUE, "tenon.conv_epilogue/1") || differ(TN_RESIZE, "tenon.resize/1") ||
         differ(TN_POINTWISE, "tenon.pointwise/1") || differ(TN_GATHER, "tenon.gather/1") ||
         differ(TN_NATIVE, "tenon.native/1") || opcodes_differ() || data_differs();
}

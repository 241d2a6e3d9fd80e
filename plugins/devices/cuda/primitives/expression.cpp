// The text of single values in a generated kernel. SPDX-License-Identifier: Apache-2.0
#include "expression.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <tenon/base.hpp>

namespace tenon::cuda {

const char* kind_name(uint8_t kind) { return kind == TN_FLOAT ? "F" : kind == TN_INT ? "I" : "bool"; }

const char* fold_name(uint16_t operation) {
  return operation == TN_OP_REDUCE_SUM ? "Sum" : operation == TN_OP_REDUCE_MAX ? "Max" : "Min";
}

const char* element_name(const tn_pointwise_site& site, tn_dtype dtype) {
  return element_name(dtype == TN_COMPUTE ? site.compute : dtype);
}

const char* position(uint8_t extent) {
  switch (extent) {
    case TN_SCALAR:
      return "0";
    case TN_PER_COLUMN:
      return "c";
    case TN_PER_ROW:
      return "r";
    default:
      return "i";
  }
}

std::string place(uint8_t extent, bool indexed) {
  if (!indexed || (extent != TN_FULL && extent != TN_PER_ROW)) return position(extent);
  return extent == TN_FULL ? "a.rows.ids[r] * columns + c" : "a.rows.ids[r]";
}

namespace {

// The nearest int of a constant's number; NaN gives 0.
int64_t to_int(double number, bool wide) {
  const double end = wide ? 0x1p63 : 0x1p31;
  const int64_t most = wide ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int32_t>::max();
  if (number >= end) return most;
  if (number <= -end) return -most - 1;
  return number == number ? static_cast<int64_t>(number) : 0;
}

// By its bits, so that the text is exact, also for infinity and NaN.
std::string constant(double number, uint8_t kind, bool wide) {
  char out[64];
  if (kind == TN_LOGICAL) return number != 0 ? "true" : "false";
  if (kind == TN_INT) {
    std::snprintf(out, sizeof out, "(I)0x%llxull", static_cast<unsigned long long>(to_int(number, wide)));
  } else if (wide) {
    uint64_t bits = 0;
    std::memcpy(&bits, &number, sizeof bits);
    std::snprintf(out, sizeof out, "__longlong_as_double((Int64)0x%llxull)", static_cast<unsigned long long>(bits));
  } else {
    const auto narrow = static_cast<float>(number);
    uint32_t bits = 0;
    std::memcpy(&bits, &narrow, sizeof bits);
    std::snprintf(out, sizeof out, "__uint_as_float(0x%xu)", static_cast<unsigned>(bits));
  }
  return out;
}

}  // namespace

bool Expressions::keeps(int32_t value) const {
  return std::find(kernel_.keeps.begin(), kernel_.keeps.end(), value) != kernel_.keeps.end();
}

std::string Expressions::cast(const Node& node, const std::string& a) const {
  const uint8_t from = plan_.node(node.operands[0]).kind;
  if (node.kind == TN_LOGICAL) return a + " != 0";
  if (from == TN_LOGICAL) return std::string("(") + kind_name(node.kind) + ")(" + a + " ? 1 : 0)";
  return node.kind == TN_INT ? "nearest<I>(" + a + ")" : "(F)" + a;
}

// Arithmetic on floats and ints. Floats are added and multiplied by functions that the compiler does not contract to a
// fused one: kernels compute a value anew, and a program may compare it with what another kernel made of it.
std::string Expressions::arithmetic(const Node& node, const std::string& a, const std::string& b) const {
  const bool is_int = node.kind == TN_INT;
  const std::string suffix = site_.compute == TN_F64 ? "(" : "f(";
  switch (node.operation) {
    case TN_OP_ADD:
      return (is_int ? "wrap_add(" : "plus(") + a + ", " + b + ")";
    case TN_OP_SUB:
      return (is_int ? "wrap_sub(" : "minus(") + a + ", " + b + ")";
    case TN_OP_MUL:
      return (is_int ? "wrap_mul(" : "times(") + a + ", " + b + ")";
    case TN_OP_DIV:
      return a + " / " + b;
    case TN_OP_MIN:
      return "least(" + a + ", " + b + ")";
    case TN_OP_MAX:
      return "most(" + a + ", " + b + ")";
    case TN_OP_NEG:
      return is_int ? "wrap_sub(0, " + a + ")" : "-" + a;
    case TN_OP_ABS:
      return is_int ? a + " < 0 ? wrap_sub(0, " + a + ") : " + a : "fabs" + suffix + a + ")";
    case TN_OP_FLOOR:
      return "floor" + suffix + a + ")";
    case TN_OP_ROUND:
      return "rint" + suffix + a + ")";
    case TN_OP_SIGN:
      return "sign_of(" + a + ")";
    case TN_OP_FLOOR_DIV:
      return "floor_div(" + a + ", " + b + ")";
    case TN_OP_MOD:
      return "floor_mod(" + a + ", " + b + ")";
    case TN_OP_SQRT:
      return "sqrt" + suffix + a + ")";
    case TN_OP_EXP:
      return "exp" + suffix + a + ")";
    case TN_OP_EXPM1:
      return "expm1" + suffix + a + ")";
    case TN_OP_LOG:
      return "log" + suffix + a + ")";
    case TN_OP_LOG1P:
      return "log1p" + suffix + a + ")";
    case TN_OP_TANH:
      return "tanh" + suffix + a + ")";
    case TN_OP_ERF:
      return "erf" + suffix + a + ")";
    case TN_OP_SIN:
      return "sin" + suffix + a + ")";
    case TN_OP_COS:
      return "cos" + suffix + a + ")";
    case TN_OP_POW:
      return "pow" + suffix + a + ", " + b + ")";
    default:
      throw tn::Failure(TN_UNSUPPORTED, "program",
                        std::string("CUDA has no code for opcode \"") + tn_op_info(node.operation).name + "\"");
  }
}

// Folds the partial results of a global reduction: [parts] to SCALAR, [strips, columns] to PER_COLUMN.
std::string Expressions::folded(const Node& node) const {
  const std::string fold = std::string(fold_name(node.operation)) + ", " + kind_name(node.kind) + ">(a.buffers[" +
                           text(node.partial) + "], ";
  if (node.extent == TN_PER_COLUMN) return "fold_strips<" + fold + "c, columns, strips)";
  const Grid maker = plan_.buffers[static_cast<size_t>(node.partial)].maker;
  const char* const count = maker == Grid::kElements       ? "rows * columns, "
                            : maker == Grid::kColumnVector ? "columns, "
                                                           : "rows, ";
  return "fold_parts<" + fold + "pieces(" + count + text(maker == Grid::kRows ? kThreads / group_ : kTile) + ", " +
         text(kMostParts) + "))";
}

std::string Expressions::input_place(const Node& load) const {
  return place(load.extent, indexed_.any() && indexed_.inputs[load.index] != 0);
}

std::string Expressions::of(int32_t value) const {
  const Node& node = plan_.node(value);
  if (node.global && keeps(value)) return folded(node);
  if (plan_.is_leaf(kernel_, value))
    return std::string("((const ") + kind_name(node.kind) + "*)a.buffers[" + text(node.kept) + "])[" +
           position(node.extent) + "]";
  return computed(node);
}

std::string Expressions::computed(const Node& node) const {
  const auto operand = [&](int k) { return name(node.operands[k]); };
  switch (node.operation) {
    case kLoad:
      return std::string("read<") + kind_name(node.kind) + ", " + element_name(site_, site_.inputs[node.index]) +
             ">(a.inputs[" + text(node.index) + "], " + input_place(node) + ")";
    case kConstant:
      return constant(node.number, node.kind, site_.compute == TN_F64);
    case kIndex:
      return std::string("(I)") + position(node.extent);
    case TN_OP_UNIFORM:
      return "(F)uniform(a.random, " + text(node.index) + "u, " + position(node.extent) + ")";
    case kCopy:
      return operand(0);
    case TN_OP_CAST:
      return cast(node, operand(0));
    case TN_OP_EQUAL:
      return operand(0) + " == " + operand(1);
    case TN_OP_LESS:
      return operand(0) + " < " + operand(1);
    case TN_OP_LESS_EQUAL:
      return operand(0) + " <= " + operand(1);
    case TN_OP_IS_FINITE:
      return "is_finite(" + operand(0) + ")";
    case TN_OP_AND:
      return operand(0) + " && " + operand(1);
    case TN_OP_OR:
      return operand(0) + " || " + operand(1);
    case TN_OP_NOT:
      return "!" + operand(0);
    case TN_OP_SELECT:
      return operand(0) + " ? " + operand(1) + " : " + operand(2);
    default:
      return arithmetic(node, operand(0), node.operands[1] >= 0 ? operand(1) : "");
  }
}

}  // namespace tenon::cuda

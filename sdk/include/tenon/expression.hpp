/* Tenon SDK for C++17: pointwise programs written as formulas. SPDX-License-Identifier: MIT
 *
 *   tn::Program p;
 *   tn::Float x = p.full();
 *   p.output(select(x > 0, x, 0.1 * x));
 *   use(p.get());
 *
 * Nothing is computed: each operator records one instruction of tenon/program.h, which defines it. Mixing Float, Int
 * and Logical does not compile; to_float, to_int and to_logical convert.
 * C++ numbers become constants of the kind that is needed. Extents follow the rules of program.h and are not
 * written; only a reduction names its extent.
 *
 * An expression makes one input at most: C++ leaves the order open in which `p.full() - p.full()` makes its two. Name
 * each first, or make them together:
 *
 *   const auto [x, scale] = p.inputs(TN_FULL, TN_PER_COLUMN);
 *
 * Misuse (values of two programs in one expression, two inputs made in one, a reduction that reduces nothing) throws
 * std::invalid_argument. */
#ifndef TENON_EXPRESSION_HPP
#define TENON_EXPRESSION_HPP

#include <tenon/program.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace tn {

namespace detail {

struct Handle;

// The instructions, inputs and outputs of a Program so far.
struct ProgramRecorder {
  std::vector<tn_instruction> instructions;
  std::vector<tn_program_input> inputs;
  std::vector<tn_program_output> outputs;
  std::vector<int32_t> newest;  // of each instruction: the largest number of an input that it depends on, or -1
  tn_program view = {};

  int32_t append(uint16_t op, uint8_t kind, uint8_t extent, const int32_t (&operands)[3], double number = 0) {
    tn_instruction in = {op, kind, extent, operands[0], operands[1], operands[2], number};
    instructions.push_back(in);
    newest.push_back(-1);
    for (const int32_t operand : operands)
      if (operand >= 0) newest.back() = std::max(newest.back(), newest[static_cast<size_t>(operand)]);
    return static_cast<int32_t>(instructions.size() - 1);
  }
  int32_t source(uint16_t op, uint8_t kind, uint8_t extent, int32_t a = -1) {
    const int32_t value = append(op, kind, extent, {-1, -1, -1});
    instructions.back().a = a;
    if (op == TN_OP_INPUT) newest.back() = a;
    return value;
  }
  // Equal constants share one value; -0 and 0 are different constants.
  int32_t constant(double number, uint8_t kind) {
    for (size_t i = 0; i < instructions.size(); ++i) {
      const tn_instruction& in = instructions[i];
      const bool same = std::memcmp(&in.number, &number, sizeof number) == 0;  // NOLINT(*-memory-comparison, *-exp42-c)
      if (in.op == TN_OP_CONSTANT && in.kind == kind && same) return static_cast<int32_t>(i);
    }
    return append(TN_OP_CONSTANT, kind, TN_SCALAR, {-1, -1, -1}, number);
  }
  uint8_t extent(int32_t value) const { return instructions[static_cast<size_t>(value)].extent; }
  inline int32_t number_of(const Handle& handle, uint8_t kind);
  // Throws if the operands make two inputs, so that their numbers depend on the compiler. Returns the first of them.
  inline int32_t made_inputs(uint16_t op, const Handle* const* operands, size_t count) const;
};

// The base of Float, Int and Logical: a value of a recording, or a constant that belongs to no recording yet. A value
// that is still a part of the expression that computes it knows the first input which this expression makes. Copies,
// thus the operands that have a name, do not, so operators take their operands by value.
struct Handle {
  ProgramRecorder* recording = nullptr;
  int32_t value = -1;
  int32_t made = -1;    // the number of that input, or -1
  uint32_t number = 0;  // of a State (tenon/updater.hpp), its number
  double literal = 0;

  explicit Handle(double constant) : literal(constant) {}
  Handle(ProgramRecorder& owner, int32_t instruction, int32_t made_input = -1)
      : recording(&owner), value(instruction), made(made_input) {}
  Handle(const Handle& other) : Handle(other, -1) {}
  Handle& operator=(const Handle& other) {
    if (this == &other) return *this;
    recording = other.recording;
    value = other.value;
    made = -1;
    number = other.number;
    literal = other.literal;
    return *this;
  }

 protected:
  // The same part of the expression as `other`, with another type.
  Handle(const Handle& other, int32_t made_input)
      : recording(other.recording),
        value(other.value),
        made(made_input),
        number(other.number),
        literal(other.literal) {}
};

int32_t ProgramRecorder::number_of(const Handle& handle, uint8_t kind) {
  if (handle.recording == nullptr) return constant(handle.literal, kind);
  if (handle.recording != this) throw std::invalid_argument("an expression joins values of two programs");
  return handle.value;
}

int32_t ProgramRecorder::made_inputs(uint16_t op, const Handle* const* operands, size_t count) const {
  const bool ordered = op == TN_OP_AND || op == TN_OP_OR;  // C++ evaluates the left side of && and || first
  int32_t first = -1;
  for (size_t i = 0; i < count; ++i) {
    if (operands[i]->made < 0) continue;
    for (size_t k = 0; k < count && !ordered; ++k) {
      if (k == i || operands[k]->recording == nullptr ||
          newest[static_cast<size_t>(operands[k]->value)] <= operands[i]->made)
        continue;
      const tn_instruction& a = instructions[static_cast<size_t>(operands[i]->value)];
      const tn_instruction& b = instructions[static_cast<size_t>(operands[k]->value)];
      const bool exchangeable = (op == TN_OP_ADD || op == TN_OP_MUL || op == TN_OP_EQUAL) && a.op == TN_OP_INPUT &&
                                b.op == TN_OP_INPUT && a.extent == b.extent;
      if (!exchangeable)
        throw std::invalid_argument(
            "an expression makes two inputs of a program, and C++ does not define which of them is the first; give "
            "each a name in a statement before, or make them together with inputs()");
    }
    first = first < 0 ? operands[i]->made : std::min(first, operands[i]->made);
  }
  return first;
}

// Records `op` of the operands; R is the kind of the result. Its extent is the union of the operands' extents.
template <typename R, typename... V>
R apply(uint16_t op, const V&... operands) {
  ProgramRecorder* recording = nullptr;
  ((recording = recording == nullptr ? operands.recording : recording), ...);
  if (recording == nullptr) throw std::invalid_argument("an expression of constants alone; compute it in C++");
  int32_t numbers[3] = {-1, -1, -1};
  uint32_t extent = TN_SCALAR;
  size_t next = 0;
  ((numbers[next++] = recording->number_of(operands, V::kKind)), ...);
  for (size_t i = 0; i < next; ++i) extent |= recording->extent(numbers[i]);
  const Handle* const handles[] = {&operands...};
  const int32_t made = recording->made_inputs(op, handles, next);
  return R(Handle(*recording, recording->append(op, R::kKind, static_cast<uint8_t>(extent), numbers), made));
}

template <typename V>
V reduce(uint16_t op, const V& operand, uint8_t extent) {
  if (operand.recording == nullptr) throw std::invalid_argument("a reduction of a constant");
  const uint8_t from = operand.recording->extent(operand.value);
  if (from == extent || (from | extent) != from)
    throw std::invalid_argument("a reduction of extent " + std::to_string(from) + " to " + std::to_string(extent) +
                                " reduces nothing");
  return V(Handle(*operand.recording, operand.recording->append(op, V::kKind, extent, {operand.value, -1, -1}),
                  operand.made));
}

// Operators that Float and Int share.
template <typename V, typename Logical>
struct Numeric {
  friend V operator+(V a, V b) { return apply<V>(TN_OP_ADD, a, b); }
  friend V operator-(V a, V b) { return apply<V>(TN_OP_SUB, a, b); }
  friend V operator*(V a, V b) { return apply<V>(TN_OP_MUL, a, b); }
  friend V operator-(V a) { return apply<V>(TN_OP_NEG, a); }
  friend V abs(V a) { return apply<V>(TN_OP_ABS, a); }
  friend V min(V a, V b) { return apply<V>(TN_OP_MIN, a, b); }
  friend V max(V a, V b) { return apply<V>(TN_OP_MAX, a, b); }
  friend V sign(V a) { return apply<V>(TN_OP_SIGN, a); }

  friend Logical operator==(V a, V b) { return apply<Logical>(TN_OP_EQUAL, a, b); }
  friend Logical operator!=(V a, V b) { return !apply<Logical>(TN_OP_EQUAL, a, b); }
  friend Logical operator<(V a, V b) { return apply<Logical>(TN_OP_LESS, a, b); }
  friend Logical operator<=(V a, V b) { return apply<Logical>(TN_OP_LESS_EQUAL, a, b); }
  friend Logical operator>(V a, V b) { return apply<Logical>(TN_OP_LESS, b, a); }
  friend Logical operator>=(V a, V b) { return apply<Logical>(TN_OP_LESS_EQUAL, b, a); }

  // Reductions: one value for each row, for each column, or one for the whole grid.
  friend V max_per_row(V a) { return reduce(TN_OP_REDUCE_MAX, a, TN_PER_ROW); }
  friend V max_per_column(V a) { return reduce(TN_OP_REDUCE_MAX, a, TN_PER_COLUMN); }
  friend V max_all(V a) { return reduce(TN_OP_REDUCE_MAX, a, TN_SCALAR); }
  friend V min_per_row(V a) { return reduce(TN_OP_REDUCE_MIN, a, TN_PER_ROW); }
  friend V min_per_column(V a) { return reduce(TN_OP_REDUCE_MIN, a, TN_PER_COLUMN); }
  friend V min_all(V a) { return reduce(TN_OP_REDUCE_MIN, a, TN_SCALAR); }

  // The value of `a` with derivative 0.
  friend V stop(V a) { return apply<V>(TN_OP_STOP, a); }
};

template <typename T>
constexpr bool kIsNumber = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

}  // namespace detail

// A truth value. && and || always evaluate both sides.
class Logical : public detail::Handle {
 public:
  static constexpr uint8_t kKind = TN_LOGICAL;
  explicit Logical(const detail::Handle& handle) : Handle(handle, handle.made) {}
  template <typename T, std::enable_if_t<std::is_same_v<T, bool>, int> = 0>
  Logical(T constant) : Handle(constant ? 1.0 : 0.0) {}  // NOLINT: meant to convert

  friend Logical operator&&(Logical a, Logical b) { return detail::apply<Logical>(TN_OP_AND, a, b); }
  friend Logical operator||(Logical a, Logical b) { return detail::apply<Logical>(TN_OP_OR, a, b); }
  friend Logical operator!(Logical a) { return detail::apply<Logical>(TN_OP_NOT, a); }
};

// A number in the machine's compute type.
class Float : public detail::Handle, private detail::Numeric<Float, Logical> {
 public:
  static constexpr uint8_t kKind = TN_FLOAT;
  explicit Float(const detail::Handle& handle) : Handle(handle, handle.made) {}
  template <typename T, std::enable_if_t<detail::kIsNumber<T>, int> = 0>
  Float(T constant) : Handle(static_cast<double>(constant)) {}  // NOLINT: meant to convert

  friend Float operator/(Float a, Float b) { return detail::apply<Float>(TN_OP_DIV, a, b); }
  friend Float sum_per_row(Float a) { return detail::reduce(TN_OP_REDUCE_SUM, a, TN_PER_ROW); }
  friend Float sum_per_column(Float a) { return detail::reduce(TN_OP_REDUCE_SUM, a, TN_PER_COLUMN); }
  friend Float sum_all(Float a) { return detail::reduce(TN_OP_REDUCE_SUM, a, TN_SCALAR); }
};

// A whole number: an index, a label. Constants are exact up to 2^53.
class Int : public detail::Handle, private detail::Numeric<Int, Logical> {
 public:
  static constexpr uint8_t kKind = TN_INT;
  explicit Int(const detail::Handle& handle) : Handle(handle, handle.made) {}
  template <typename T, std::enable_if_t<detail::kIsNumber<T> && std::is_integral_v<T>, int> = 0>
  Int(T constant) : Handle(exact(static_cast<int64_t>(constant))) {}  // NOLINT: meant to convert

 private:
  static double exact(int64_t number) {
    constexpr int64_t kMost = int64_t{1} << 53;
    if (number > kMost || number < -kMost) throw std::invalid_argument("an integer constant above 2^53");
    return static_cast<double>(number);
  }
};

inline Float sqrt(Float a) { return detail::apply<Float>(TN_OP_SQRT, a); }
inline Float exp(Float a) { return detail::apply<Float>(TN_OP_EXP, a); }
inline Float expm1(Float a) { return detail::apply<Float>(TN_OP_EXPM1, a); }
inline Float log(Float a) { return detail::apply<Float>(TN_OP_LOG, a); }
inline Float log1p(Float a) { return detail::apply<Float>(TN_OP_LOG1P, a); }
inline Float tanh(Float a) { return detail::apply<Float>(TN_OP_TANH, a); }
inline Float erf(Float a) { return detail::apply<Float>(TN_OP_ERF, a); }
inline Float sin(Float a) { return detail::apply<Float>(TN_OP_SIN, a); }
inline Float cos(Float a) { return detail::apply<Float>(TN_OP_COS, a); }
inline Float pow(Float a, Float b) { return detail::apply<Float>(TN_OP_POW, a, b); }
inline Float floor(Float a) { return detail::apply<Float>(TN_OP_FLOOR, a); }
// Rounds halves to the even number, as C's nearbyint.
inline Float round(Float a) { return detail::apply<Float>(TN_OP_ROUND, a); }
inline Logical is_finite(Float a) { return detail::apply<Logical>(TN_OP_IS_FINITE, a); }

// Division of whole numbers that rounds down, and its remainder, which has the sign of b; both 0 where b is 0. Not
// operators / and %, since those of C++ round towards 0.
inline Int floor_div(Int a, Int b) { return detail::apply<Int>(TN_OP_FLOOR_DIV, a, b); }
inline Int mod(Int a, Int b) { return detail::apply<Int>(TN_OP_MOD, a, b); }

// condition ? a : b. Two C++ numbers need a decimal point, which makes them Float: select(c, 1.0, 0.0).
inline Float select(Logical c, Float a, Float b) { return detail::apply<Float>(TN_OP_SELECT, c, a, b); }
inline Int select(Logical c, Int a, Int b) { return detail::apply<Int>(TN_OP_SELECT, c, a, b); }
inline Logical select(Logical c, Logical a, Logical b) { return detail::apply<Logical>(TN_OP_SELECT, c, a, b); }

// Casts: a Float loses its fraction, a truth value is 0 or 1, anything but 0 is true.
inline Float to_float(Int a) { return detail::apply<Float>(TN_OP_CAST, a); }
inline Float to_float(Logical a) { return detail::apply<Float>(TN_OP_CAST, a); }
inline Int to_int(Float a) { return detail::apply<Int>(TN_OP_CAST, a); }
inline Int to_int(Logical a) { return detail::apply<Int>(TN_OP_CAST, a); }
inline Logical to_logical(Float a) { return detail::apply<Logical>(TN_OP_CAST, a); }
inline Logical to_logical(Int a) { return detail::apply<Logical>(TN_OP_CAST, a); }

// A program under construction. Its values are valid during its lifetime. May be moved.
class Program {
 public:
  Program() : recording_(std::make_unique<detail::ProgramRecorder>()) {}

  // The next input, by its extent; p.per_row<Int>() is an integer one.
  template <typename V = Float>
  V full() {
    return next_input<V>(TN_FULL);
  }
  template <typename V = Float>
  V per_row() {
    return next_input<V>(TN_PER_ROW);
  }
  template <typename V = Float>
  V per_column() {
    return next_input<V>(TN_PER_COLUMN);
  }
  template <typename V = Float>
  V scalar() {
    return next_input<V>(TN_SCALAR);
  }

  // The next inputs, in this order, by their extents.
  template <typename V = Float, typename... Extent>
  std::array<V, sizeof...(Extent)> inputs(Extent... extents) {
    return {{next_input<V>(static_cast<uint8_t>(extents))...}};
  }

  // The index of the row (PER_ROW) and of the column (PER_COLUMN), from 0.
  Int row() { return source<Int>(TN_OP_ROW, TN_PER_ROW); }
  Int column() { return source<Int>(TN_OP_COLUMN, TN_PER_COLUMN); }
  // Draw `number` of the program: a random number in [0, 1) for each element; equal draw numbers give equal values.
  Float uniform(int32_t number, uint8_t extent = TN_FULL) { return source<Float>(TN_OP_UNIFORM, extent, number); }
  // Seldom needed: operators convert C++ numbers to constants.
  Float constant(double number) { return Float(detail::Handle(*recording_, recording_->constant(number, TN_FLOAT))); }

  // Adds the next output, stored with its own extent.
  void output(const Float& value, tn_dtype dtype = TN_COMPUTE) { add_output(value, TN_FLOAT, dtype); }
  void output(const Int& value, tn_dtype dtype = TN_I64) { add_output(value, TN_INT, dtype); }
  void output(const Logical& value, tn_dtype dtype = TN_BOOL) { add_output(value, TN_LOGICAL, dtype); }

  // For C; valid until the program is changed, moved or destroyed.
  const tn_program* get() const {
    tn_program& view = recording_->view;
    view.size = sizeof view;
    view.instructions_count = static_cast<uint32_t>(recording_->instructions.size());
    view.instructions = recording_->instructions.data();
    view.inputs_count = static_cast<uint32_t>(recording_->inputs.size());
    view.outputs_count = static_cast<uint32_t>(recording_->outputs.size());
    view.inputs = recording_->inputs.data();
    view.outputs = recording_->outputs.data();
    return &view;
  }

 protected:
  // Declares an input without reading it.
  void declare_input(uint8_t extent, uint8_t kind) { recording_->inputs.push_back({extent, kind, 0}); }
  // Reads a declared input.
  template <typename V>
  V read_input(size_t number) {
    if (number >= recording_->inputs.size() || recording_->inputs[number].kind != V::kKind)
      throw std::invalid_argument("the program has no input " + std::to_string(number) + " of that kind");
    const uint8_t extent = recording_->inputs[number].extent;
    return source<V>(TN_OP_INPUT, extent, static_cast<int32_t>(number));
  }

 private:
  template <typename V>
  V next_input(uint8_t extent) {
    declare_input(extent, V::kKind);
    const auto number = static_cast<int32_t>(recording_->inputs.size() - 1);
    return V(detail::Handle(*recording_, recording_->source(TN_OP_INPUT, V::kKind, extent, number), number));
  }
  template <typename V>
  V source(uint16_t op, uint8_t extent, int32_t a = -1) {
    return V(detail::Handle(*recording_, recording_->source(op, V::kKind, extent, a)));
  }
  void add_output(const detail::Handle& value, uint8_t kind, tn_dtype dtype) {
    recording_->outputs.push_back({recording_->number_of(value, kind), dtype});
  }

  std::unique_ptr<detail::ProgramRecorder> recording_;
};

// An author's own gradient of `forward` (tn_pointwise.gradient). Its inputs are declared by the constructor and read by
// name; values that it does not read are not saved. Needs one output for each input of `forward`, in order: the input's
// gradient, or 0.0 for integers.
class GradientProgram : public Program {
 public:
  explicit GradientProgram(const Program& forward) {
    const tn_program& program = *forward.get();
    inputs_ = program.inputs_count;
    outputs_ = program.outputs_count;
    for (size_t i = 0; i < inputs_; ++i) declare_input(program.inputs[i].extent, program.inputs[i].kind);
    for (size_t i = 0; i < outputs_; ++i) declare_input(made_by(program, i).extent, made_by(program, i).kind);
    for (size_t i = 0; i < outputs_; ++i) declare_input(made_by(program, i).extent, TN_FLOAT);
  }

  template <typename V = Float>
  V input(size_t i = 0) {
    return read_input<V>(within(i, inputs_));
  }
  template <typename V = Float>
  V result(size_t i = 0) {
    return read_input<V>(inputs_ + within(i, outputs_));
  }
  Float result_gradient(size_t i = 0) { return read_input<Float>(inputs_ + outputs_ + within(i, outputs_)); }

 private:
  static const tn_instruction& made_by(const tn_program& program, size_t output) {
    return program.instructions[program.outputs[output].value];
  }
  static size_t within(size_t i, size_t count) {
    if (i >= count) throw std::invalid_argument("the forward program has only " + std::to_string(count) + " of these");
    return i;
  }

  size_t inputs_ = 0;
  size_t outputs_ = 0;
};

}  // namespace tn
#endif

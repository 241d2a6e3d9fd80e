// Formulas written as C++ expressions: recorded programs, and refused expressions. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <tenon/expression.hpp>
#include <type_traits>
#include <utility>

#include "check/definitions/program_reference.h"
#include "core/program.h"

namespace {

using tn::Float;
using tn::GradientProgram;
using tn::Int;
using tn::Logical;
using tn::Program;
using Values = std::vector<std::vector<double>>;

// Returns the outputs over a grid of 2 rows and 3 columns, after the host has validated the program.
Values evaluate(const Program& program, const Values& inputs) {
  const tenon::core::Program checked = tenon::core::Program::from(*program.get());
  for (size_t i = 0; i < checked.instructions.size(); ++i)
    EXPECT_EQ(program.get()->instructions[i].extent, checked.extents[i]) << "instruction " << i;
  return tenon::check::reference::evaluate(*program.get(), 2, 3, inputs);
}

const std::vector<double> kX = {-1.5, -0.25, 0, 0.25, 2, 3};
const std::vector<double> kY = {2, -0.25, 1, 0.5, -3, 3};

// Records `formula` of two full values and compares it with `expected` of doubles, element by element.
template <typename Formula, typename Expected>
void expect_same(Formula formula, Expected expected) {
  Program p;
  const Float x = p.full();
  const Float y = p.full();
  p.output(formula(x, y));
  const Values outputs = evaluate(p, {kX, kY});
  for (size_t i = 0; i < kX.size(); ++i) {
    const double wanted = expected(kX[i], kY[i]);
    if (std::isnan(wanted))
      EXPECT_TRUE(std::isnan(outputs[0][i])) << "element " << i;
    else
      EXPECT_DOUBLE_EQ(outputs[0][i], wanted) << "element " << i;
  }
}
// Compiles the formula twice: once as a recording and once as plain arithmetic.
#define EXPECT_SAME(expression)                                                                            \
  expect_same([]([[maybe_unused]] const auto& x, [[maybe_unused]] const auto& y) { return (expression); }, \
              []([[maybe_unused]] double x, [[maybe_unused]] double y) { return static_cast<double>(expression); })

double to_float(bool value) { return value ? 1 : 0; }
double select(bool condition, double a, double b) { return condition ? a : b; }
double min(double a, double b) { return a < b ? a : b; }
double max(double a, double b) { return a < b ? b : a; }
double sign(double a) { return a < 0 ? -1 : a > 0 ? 1 : 0; }
double round(double a) { return std::nearbyint(a); }
bool is_finite(double a) { return std::isfinite(a); }

TEST(LayerOutput, ArithmeticMeansWhatItSays) {
  EXPECT_SAME(x + y * 2 - x / (y + 0.125));
  EXPECT_SAME(-x - (1 - y));
  EXPECT_SAME(min(x, y) + 3 * max(x, 0.5) + abs(y));
}

TEST(LayerOutput, FunctionsMeanWhatTheySay) {
  using std::erf, std::exp, std::expm1, std::log, std::log1p, std::sqrt, std::tanh;
  EXPECT_SAME(exp(x) + expm1(y));
  EXPECT_SAME(log(x * x + 1) + log1p(y * y));
  EXPECT_SAME(sqrt(y + 4) + tanh(x) + erf(y));
  using std::cos, std::floor, std::pow, std::sin;
  EXPECT_SAME(sin(x) + 2 * cos(y));
  EXPECT_SAME(pow(abs(x), y) + pow(x, 3) + pow(2, y));
  EXPECT_SAME(floor(x) + 8 * round(x) + 64 * sign(y));
  EXPECT_SAME(to_float(is_finite(x / y)));
}

TEST(LayerOutput, WholeNumbersDivideTowardsTheLowerOne) {
  Program p;
  const Int label = p.full<Int>();
  p.output(floor_div(label, 3));
  p.output(mod(label, 3));
  p.output(mod(label, -3));
  p.output(mod(7, label));
  p.output(sign(label));
  const Values outputs = evaluate(p, {{-7, -3, -1, 0, 2, 7}});
  EXPECT_EQ(outputs[0], (std::vector<double>{-3, -1, -1, 0, 0, 2}));
  EXPECT_EQ(outputs[1], (std::vector<double>{2, 0, 2, 0, 2, 1}));
  EXPECT_EQ(outputs[2], (std::vector<double>{-1, 0, -1, 0, -1, -2}));
  EXPECT_EQ(outputs[3], (std::vector<double>{0, -2, 0, 0, 1, 0}));
  EXPECT_EQ(outputs[4], (std::vector<double>{-1, -1, -1, 0, 1, 1}));
}

TEST(LayerOutput, ComparisonsAndLogicMeanWhatTheySay) {
  EXPECT_SAME(to_float(x == y) + 2 * to_float(x != y) + 4 * to_float(x < y));
  EXPECT_SAME(to_float(x <= y) + 2 * to_float(x > y) + 4 * to_float(x >= 0));
  EXPECT_SAME(to_float((x > 0 && y > 0) || !(x < y)));
  EXPECT_SAME(select(x > 0, x, 0.1 * x));
  EXPECT_SAME(select(x > y, 1.0, 0.0));
}

TEST(LayerOutput, ReductionsNameTheExtentThatRemains) {
  Program p;
  const Float x = p.full();
  p.output(sum_per_row(x));
  p.output(max_per_column(x));
  p.output(min_all(x));
  p.output(sum_all(sum_per_column(x)));
  p.output(max_per_row(select(x > 0, p.column(), -1)));
  const Values outputs = evaluate(p, {kX});
  EXPECT_EQ(outputs[0], (std::vector<double>{-1.75, 5.25}));
  EXPECT_EQ(outputs[1], (std::vector<double>{0.25, 2, 3}));
  EXPECT_EQ(outputs[2], std::vector<double>{-1.5});
  EXPECT_EQ(outputs[3], std::vector<double>{3.5});
  EXPECT_EQ(outputs[4], (std::vector<double>{-1, 2}));
}

TEST(LayerOutput, ExtentsFollowFromTheOperands) {
  Program p;
  const Float x = p.full();
  const Float bias = p.per_column();
  const Int label = p.per_row<Int>();
  const Float scale = p.scalar();
  p.output(x * scale + bias);
  p.output(p.column() == label);
  p.output(p.row() * 10 + label);
  const Values outputs = evaluate(p, {kX, {1, 2, 3}, {2, 0}, {2}});
  EXPECT_EQ(outputs[0], (std::vector<double>{-2, 1.5, 3, 1.5, 6, 9}));
  EXPECT_EQ(outputs[1], (std::vector<double>{0, 0, 1, 1, 0, 0}));
  EXPECT_EQ(outputs[2], (std::vector<double>{2, 10}));
  EXPECT_EQ(p.get()->outputs[0].dtype, TN_COMPUTE);
  EXPECT_EQ(p.get()->outputs[1].dtype, TN_BOOL);
  EXPECT_EQ(p.get()->outputs[2].dtype, TN_I64);
}

TEST(LayerOutput, CastsConvert) {
  Program p;
  const Float x = p.full();
  p.output(to_float(to_int(x)));
  p.output(to_float(to_logical(x)));
  p.output(to_int(to_logical(to_int(x))));
  const Values outputs = evaluate(p, {kX});
  EXPECT_EQ(outputs[0], (std::vector<double>{-1, 0, 0, 0, 2, 3}));
  EXPECT_EQ(outputs[1], (std::vector<double>{1, 1, 0, 1, 1, 1}));
  EXPECT_EQ(outputs[2], (std::vector<double>{1, 0, 0, 0, 1, 1}));
}

TEST(LayerOutput, NoDerivativeFlowsThroughStop) {
  Program p;
  const Float x = p.full();
  p.output(x * stop(x));
  const tenon::core::Program gradient = tenon::core::derive_gradient(tenon::core::Program::from(*p.get()), {true}, {0});
  const std::vector<double> ones(6, 1.0);
  EXPECT_EQ(tenon::check::reference::evaluate(gradient.view(), 2, 3, {kX, ones, ones})[0], kX);  // and not 2 x
}

TEST(LayerOutput, EqualConstantsAreOneInstruction) {
  Program p;
  const Float x = p.full();
  p.output((x + 2) * 2 + 2.0 * x);
  int constants = 0;
  for (uint32_t i = 0; i < p.get()->instructions_count; ++i)
    constants += p.get()->instructions[i].op == TN_OP_CONSTANT ? 1 : 0;
  EXPECT_EQ(constants, 1);
}

TEST(LayerOutput, MayBeMovedWhileItIsWritten) {
  Program first;
  const Float x = first.full();
  Program second = std::move(first);
  second.output(x + 1);
  EXPECT_EQ(evaluate(second, {kX})[0][5], 4);
}

TEST(LayerOutput, GradientProgramsReadInputsResultsAndGradients) {
  Program forward;
  const Float x = forward.full();
  const Int label = forward.per_row<Int>();
  forward.output(sum_per_row(select(forward.column() == label, x, 0.0)));
  GradientProgram backward(forward);
  backward.output(select(backward.column() == backward.input<Int>(1), backward.result_gradient(), 0.0));
  backward.output(0.0);
  const tenon::core::Program checked = tenon::core::Program::from(*backward.get());
  EXPECT_NO_THROW(tenon::core::check_author_gradient(checked, tenon::core::Program::from(*forward.get())));
  const Values outputs = evaluate(backward, {kX, {2, 0}, {7, 7}, {10, 20}});
  EXPECT_EQ(outputs[0], (std::vector<double>{0, 0, 10, 20, 0, 0}));

  EXPECT_THROW(backward.input<Float>(1), std::invalid_argument);
  EXPECT_THROW(backward.input<Int>(2), std::invalid_argument);
  EXPECT_THROW(backward.result(1), std::invalid_argument);
  EXPECT_THROW(backward.result_gradient(1), std::invalid_argument);
}

TEST(LayerOutput, MisuseThrows) {
  Program p, q;
  const Float x = p.full();
  const Float y = q.full();
  EXPECT_THROW(x + y, std::invalid_argument);
  EXPECT_THROW(p.output(y), std::invalid_argument);
  EXPECT_THROW(Float(1) + Float(2), std::invalid_argument);
  EXPECT_THROW(sum_all(Float(1)), std::invalid_argument);
  EXPECT_THROW(sum_per_row(p.per_row()), std::invalid_argument);
  EXPECT_THROW(sum_per_row(p.per_column()), std::invalid_argument);
  EXPECT_THROW(Int((int64_t{1} << 53) + 1), std::invalid_argument);
  EXPECT_NO_THROW(Int(-(int64_t{1} << 53)));
}

// input_order.cpp has more, for several compilers.
TEST(LayerOutput, AnExpressionThatMakesTwoInputsIsRefusedWhereTheirOrderCounts) {
  Program p;
  const Float x = p.full();
  EXPECT_THROW(p.full() - p.full(), std::invalid_argument);
  EXPECT_THROW(exp(p.full() + x) * p.per_column(), std::invalid_argument);
  EXPECT_THROW(select(p.full() > 0, x, p.full()), std::invalid_argument);
  EXPECT_THROW((p.full() + p.full()) * p.full(), std::invalid_argument);
  EXPECT_NO_THROW(p.full() + p.full());
  EXPECT_NO_THROW(p.full<Int>() * p.full<Int>());
  EXPECT_THROW(p.full() * p.per_row(), std::invalid_argument);
  EXPECT_NO_THROW(x - p.full());
  EXPECT_NO_THROW(p.full() > 0 && p.full() > 0);
  try {
    (void)(p.full() - p.full());
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(
        error.what(),
        "an expression makes two inputs of a program, and C++ does not define which of them is the first; give "
        "each a name in a statement before, or make them together with inputs()");
  }
}

TEST(LayerOutput, InputsAreNumberedInTheOrderOfTheirCall) {
  Program p;
  const auto [x, scale] = p.inputs(TN_FULL, TN_PER_COLUMN);
  const auto [label] = p.inputs<Int>(TN_PER_ROW);
  p.output(x - scale);
  p.output(select(p.column() == label, x, 0.0));
  const Values outputs = evaluate(p, {kX, {1, 2, 3}, {1, 0}});
  EXPECT_EQ(outputs[0], (std::vector<double>{-2.5, -2.25, -3, -0.75, 0, 0}));
  EXPECT_EQ(outputs[1], (std::vector<double>{0, -0.25, 0, 0.25, 0, 0}));
}

// ---- expressions that must not compile

template <typename A, typename B, typename = void>
struct Adds : std::false_type {};
template <typename A, typename B>
struct Adds<A, B, std::void_t<decltype(std::declval<A>() + std::declval<B>())>> : std::true_type {};
template <typename A, typename B, typename = void>
struct Compares : std::false_type {};
template <typename A, typename B>
struct Compares<A, B, std::void_t<decltype(std::declval<A>() == std::declval<B>())>> : std::true_type {};
template <typename A, typename B, typename = void>
struct Divides : std::false_type {};
template <typename A, typename B>
struct Divides<A, B, std::void_t<decltype(std::declval<A>() / std::declval<B>())>> : std::true_type {};
template <typename A, typename B, typename = void>
struct Ands : std::false_type {};
template <typename A, typename B>
struct Ands<A, B, std::void_t<decltype(std::declval<A>() && std::declval<B>())>> : std::true_type {};
template <typename A, typename = void>
struct HasExp : std::false_type {};
template <typename A>
struct HasExp<A, std::void_t<decltype(exp(std::declval<A>()))>> : std::true_type {};

static_assert(Adds<Float, Float>::value && Adds<Float, int>::value && Adds<double, Float>::value);
static_assert(Adds<Int, int>::value && !Adds<Int, double>::value && !Adds<Int, Float>::value);
static_assert(!Adds<Float, Logical>::value && !Adds<Logical, Logical>::value && !Adds<Float, bool>::value);
static_assert(Compares<Int, Int>::value && !Compares<Int, Float>::value && !Compares<Logical, Logical>::value);
static_assert(Divides<Float, double>::value && !Divides<Int, Int>::value);
static_assert(Ands<Logical, bool>::value && !Ands<Logical, Float>::value && !Ands<Float, Float>::value);
static_assert(HasExp<Float>::value && !HasExp<Int>::value && !HasExp<Logical>::value);
static_assert(!std::is_convertible_v<Int, Float> && !std::is_convertible_v<Float, Logical>);

// What cannot be an int, as tenon/program.h states it.
TEST(OpValue, CastsOfFloatsToInts) {
  const auto as_int = [](double a) { return tn_op_value(TN_OP_CAST, TN_INT, a, 0, 0); };
  EXPECT_EQ(as_int(2.75), 2);
  EXPECT_EQ(as_int(-2.75), -2);
  EXPECT_EQ(as_int(NAN), 0);
  EXPECT_GT(as_int(INFINITY), 9e18);
  EXPECT_LT(static_cast<double>(INT64_MIN), as_int(-INFINITY));
  EXPECT_EQ(tn_op_value(TN_OP_CAST, TN_LOGICAL, -0.5, 0, 0), 1);
}

TEST(OpValue, NaNIsTheResultOfBothExtremes) {
  for (const uint16_t op : {TN_OP_MIN, TN_OP_MAX, TN_OP_REDUCE_MIN, TN_OP_REDUCE_MAX}) {
    EXPECT_TRUE(std::isnan(tn_op_value(op, TN_FLOAT, NAN, 1, 0)));
    EXPECT_TRUE(std::isnan(tn_op_value(op, TN_FLOAT, 1, NAN, 0)));
  }
}

// An opcode without a case would give NaN: of numbers in its domain no other does.
TEST(OpValue, EveryOpcodeHasOne) {
  for (uint16_t op = 0; op < 200; ++op) {
    const bool computes = tn_op_info(op).operands > 0;
    EXPECT_EQ(std::isnan(tn_op_value(op, TN_FLOAT, 0.5, 0.25, 0.75)), !computes) << tn_op_info(op).name;
  }
}

}  // namespace

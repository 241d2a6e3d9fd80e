// Derivatives of pointwise programs against finite differences of the reference interpreter, opcode by opcode.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>

#include "check/definitions/program_reference.h"
#include "core/error.h"
#include "core/program.h"

namespace tenon_tests {

using namespace tenon::core;

namespace {

using Values = std::vector<std::vector<double>>;

struct Grid {
  int64_t rows, columns;
};

Values random_inputs(const Program& program, const Grid& grid, double low, double high, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> draw(low, high);
  Values inputs;
  for (const tn_program_input& input : program.inputs) {
    inputs.emplace_back(static_cast<size_t>(tenon::check::reference::elements(input.extent, grid.rows, grid.columns)));
    for (double& value : inputs.back())
      value = input.kind == TN_FLOAT ? draw(random) : static_cast<double>(random() % 3);
  }
  return inputs;
}

double weighted(const Program& program, const Grid& grid, const Values& inputs, const Values& weights) {
  const Values outputs = tenon::check::reference::evaluate(program.view(), grid.rows, grid.columns, inputs);
  double sum = 0;
  for (size_t i = 0; i < outputs.size(); ++i)
    for (size_t k = 0; k < outputs[i].size(); ++k) sum += outputs[i][k] * weights[i][k];
  return sum;
}

// Compares derive_gradient with central differences for all float inputs. Returns the number of compared elements.
size_t check(const Program& program, const Grid& grid, double low = 0.2, double high = 2.0) {
  Values inputs = random_inputs(program, grid, low, high, 42);
  Values weights;
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> draw(-1, 1);
  for (const std::vector<double>& output :
       tenon::check::reference::evaluate(program.view(), grid.rows, grid.columns, inputs)) {
    weights.emplace_back(output.size());
    for (double& weight : weights.back()) weight = draw(random);
  }
  std::vector<int32_t> wanted;
  for (size_t i = 0; i < program.inputs.size(); ++i)
    if (program.inputs[i].kind == TN_FLOAT) wanted.push_back(static_cast<int32_t>(i));
  const Program gradient = derive_gradient(program, std::vector<bool>(program.outputs.size(), true), wanted);
  EXPECT_NO_THROW(Program::from(gradient.view()));  // the gradient program is valid
  Values arguments = inputs;
  for (const std::vector<double>& output :
       tenon::check::reference::evaluate(program.view(), grid.rows, grid.columns, inputs))
    arguments.push_back(output);
  arguments.insert(arguments.end(), weights.begin(), weights.end());
  const Values derived = tenon::check::reference::evaluate(gradient.view(), grid.rows, grid.columns, arguments);

  size_t compared = 0;
  for (size_t w = 0; w < wanted.size(); ++w) {
    std::vector<double>& input = inputs[static_cast<size_t>(wanted[w])];
    EXPECT_EQ(derived[w].size(), input.size());
    for (size_t k = 0; k < input.size() && k < derived[w].size(); ++k, ++compared) {
      const double kept = input[k];
      constexpr double kStep = 1e-6;
      input[k] = kept + kStep;
      const double above = weighted(program, grid, inputs, weights);
      input[k] = kept - kStep;
      const double below = weighted(program, grid, inputs, weights);
      input[k] = kept;
      EXPECT_NEAR(derived[w][k], (above - below) / (2 * kStep), 2e-8 * std::max(1.0, std::abs(derived[w][k])) + 2e-8)
          << "input " << wanted[w] << " element " << k;
    }
  }
  return compared;
}

Program unary(uint16_t op) {
  ProgramWriter writer;
  writer.output(writer.apply(op, writer.input(TN_FULL)));
  return writer.finish();
}

TEST(ProgramGradient, EveryUnaryOperation) {
  for (const uint16_t op : {TN_OP_NEG, TN_OP_ABS, TN_OP_SQRT, TN_OP_EXP, TN_OP_EXPM1, TN_OP_LOG, TN_OP_LOG1P,
                            TN_OP_TANH, TN_OP_ERF, TN_OP_SIN, TN_OP_COS}) {
    SCOPED_TRACE(op);
    EXPECT_EQ(check(unary(op), {3, 4}), 12U);
  }
  EXPECT_EQ(check(unary(TN_OP_ABS), {2, 2}, -2.0, -0.2), 4U);
}

// Every pair of extents: the gradient of a broadcast operand is summed over the broadcast dimensions.
TEST(ProgramGradient, EveryBinaryOperationAndExtent) {
  for (const uint16_t op : {TN_OP_ADD, TN_OP_SUB, TN_OP_MUL, TN_OP_DIV, TN_OP_MIN, TN_OP_MAX, TN_OP_POW})
    for (const uint8_t a : {TN_SCALAR, TN_PER_COLUMN, TN_PER_ROW, TN_FULL})
      for (const uint8_t b : {TN_SCALAR, TN_PER_COLUMN, TN_PER_ROW, TN_FULL}) {
        SCOPED_TRACE(testing::Message() << "op " << op << " extents " << int{a} << " " << int{b});
        ProgramWriter writer;
        const int32_t x = writer.input(a);
        writer.output(writer.apply(op, x, writer.input(b)));
        EXPECT_GT(check(writer.finish(), {3, 2}), 0U);
      }
}

TEST(ProgramGradient, EveryReduction) {
  for (const uint16_t op : {TN_OP_REDUCE_SUM, TN_OP_REDUCE_MAX, TN_OP_REDUCE_MIN})
    for (const uint8_t to : {TN_SCALAR, TN_PER_COLUMN, TN_PER_ROW}) {
      SCOPED_TRACE(testing::Message() << "op " << op << " to " << int{to});
      ProgramWriter writer;
      const int32_t x = writer.input(TN_FULL);
      const int32_t reduced = writer.reduce(op, writer.apply(TN_OP_MUL, x, x), to);
      writer.output(writer.apply(TN_OP_MUL, reduced, x));  // read by a later stage, at full extent
      EXPECT_EQ(check(writer.finish(), {3, 5}), 15U);
    }
}

// The gradient of a broadcast operand of a sum counts every element of the full grid.
TEST(ProgramGradient, CountsWhatABroadcastStandsFor) {
  ProgramWriter writer;
  const int32_t x = writer.input(TN_FULL);
  const int32_t b = writer.input(TN_PER_COLUMN);
  const int32_t c = writer.input(TN_PER_ROW);
  const int32_t sum = writer.apply(TN_OP_ADD, writer.apply(TN_OP_ADD, x, b), c);
  writer.output(writer.reduce(TN_OP_REDUCE_SUM, sum, TN_SCALAR));
  EXPECT_EQ(check(writer.finish(), {4, 3}), 12U + 3U + 4U);
}

TEST(ProgramGradient, SelectAndStop) {
  ProgramWriter writer;
  const int32_t x = writer.input(TN_FULL);
  const int32_t y = writer.input(TN_FULL);
  const int32_t label = writer.input(TN_PER_ROW, TN_INT);
  const int32_t column = writer.apply(TN_OP_EQUAL, label, writer.cast(writer.constant(1), TN_INT));
  const int32_t chosen = writer.apply(TN_OP_SELECT, column, writer.apply(TN_OP_MUL, x, y), y);
  writer.output(chosen);
  EXPECT_EQ(check(writer.finish(), {4, 3}), 24U);

  ProgramWriter stopped;
  const int32_t z = stopped.input(TN_FULL);
  stopped.output(stopped.apply(TN_OP_MUL, z, stopped.apply(TN_OP_STOP, z)));
  const Program gradient = derive_gradient(stopped.finish(), {true}, {0});
  const Values result = tenon::check::reference::evaluate(gradient.view(), 1, 1, {{3.0}, {9.0}, {1.0}});
  EXPECT_EQ(result[0][0], 3.0) << "only the path that is not stopped";
}

TEST(ProgramGradient, SoftmaxCrossEntropyAndLayerNorm) {
  ProgramWriter softmax;
  const int32_t x = softmax.input(TN_FULL);
  const int32_t label = softmax.input(TN_PER_ROW, TN_INT);
  const int32_t shifted = softmax.apply(TN_OP_SUB, x, softmax.reduce(TN_OP_REDUCE_MAX, x, TN_PER_ROW));
  const int32_t log_sum =
      softmax.apply(TN_OP_LOG, softmax.reduce(TN_OP_REDUCE_SUM, softmax.apply(TN_OP_EXP, shifted), TN_PER_ROW));
  const int32_t zeros = softmax.cast(label, TN_FLOAT);
  softmax.output(softmax.apply(TN_OP_SUB, log_sum, softmax.apply(TN_OP_MUL, zeros, log_sum)));
  softmax.output(softmax.apply(TN_OP_SUB, shifted, log_sum));
  EXPECT_EQ(check(softmax.finish(), {3, 4}), 12U);

  ProgramWriter norm;
  const int32_t v = norm.input(TN_FULL);
  const int32_t gain = norm.input(TN_PER_COLUMN);
  const int32_t scale = norm.constant(1.0 / 5);
  const auto mean = [&](int32_t of) {
    return norm.apply(TN_OP_MUL, norm.reduce(TN_OP_REDUCE_SUM, of, TN_PER_ROW), scale);
  };
  const int32_t centred = norm.apply(TN_OP_SUB, v, mean(v));
  const int32_t variance = mean(norm.apply(TN_OP_MUL, centred, centred));
  const int32_t deviation = norm.apply(TN_OP_SQRT, norm.apply(TN_OP_ADD, variance, norm.constant(1e-5)));
  norm.output(norm.apply(TN_OP_MUL, norm.apply(TN_OP_DIV, centred, deviation), gain));
  EXPECT_EQ(check(norm.finish(), {3, 5}), 20U);
}

TEST(ProgramGradient, TiesShareTheMaximum) {
  ProgramWriter writer;
  writer.output(writer.reduce(TN_OP_REDUCE_MAX, writer.input(TN_FULL), TN_PER_ROW));
  const Program gradient = derive_gradient(writer.finish(), {true}, {0});
  const Values result = tenon::check::reference::evaluate(gradient.view(), 1, 3, {{2, 2, 1}, {2}, {1}});
  EXPECT_EQ(result[0], (std::vector<double>{0.5, 0.5, 0}));
}

// Returns the gradients of all inputs at the given values, for the gradient 1 of the only output.
Values gradients_at(const Program& program, const Values& inputs) {
  std::vector<int32_t> wanted;
  for (size_t i = 0; i < inputs.size(); ++i) wanted.push_back(static_cast<int32_t>(i));
  const auto columns = static_cast<int64_t>(inputs[0].size());
  Values arguments = inputs;
  arguments.push_back(tenon::check::reference::evaluate(program.view(), 1, columns, inputs)[0]);
  arguments.emplace_back(inputs[0].size(), 1.0);
  return tenon::check::reference::evaluate(derive_gradient(program, {true}, wanted).view(), 1, columns, arguments);
}

// The derivatives that tenon/program.h defines for MIN, MAX and ABS at their kinks.
TEST(ProgramGradient, AtKinks) {
  for (const uint16_t op : {TN_OP_MIN, TN_OP_MAX}) {
    ProgramWriter writer;
    const int32_t a = writer.input(TN_FULL);
    writer.output(writer.apply(op, a, writer.input(TN_FULL)));
    const bool least = op == TN_OP_MIN;
    EXPECT_EQ(gradients_at(writer.finish(), {{2, 1, 3, 0}, {2, 3, 1, -0.0}}),
              (Values{{1, least ? 1.0 : 0.0, least ? 0.0 : 1.0, 1}, {0, least ? 0.0 : 1.0, least ? 1.0 : 0.0, 0}}));
  }
  EXPECT_EQ(gradients_at(unary(TN_OP_ABS), {{0, -0.0, 2, -2}}), (Values{{0, 0, 1, -1}}));
}

// Between their steps and at them.
TEST(ProgramGradient, StepsHaveTheDerivativeZero) {
  for (const uint16_t op : {TN_OP_FLOOR, TN_OP_ROUND, TN_OP_SIGN}) {
    SCOPED_TRACE(op);
    ProgramWriter writer;
    const int32_t x = writer.input(TN_FULL);
    writer.output(writer.apply(TN_OP_ADD, writer.apply(TN_OP_MUL, x, x), writer.apply(op, x)));
    EXPECT_EQ(gradients_at(writer.finish(), {{0.3, -1.7, 0, 1, 2.5}}), (Values{{0.6, -3.4, 0, 2, 5}}));
  }
}

// Ints and bools take no gradient, and nothing flows through them to the floats that they are made of.
TEST(ProgramGradient, WholeNumbersHaveNone) {
  ProgramWriter writer;
  const int32_t x = writer.input(TN_FULL), label = writer.input(TN_FULL, TN_INT);
  const int32_t whole = writer.cast(x, TN_INT);
  const int32_t half = writer.apply(TN_OP_FLOOR_DIV, whole, label), rest = writer.apply(TN_OP_MOD, whole, label);
  const int32_t factor = writer.cast(writer.apply(TN_OP_ADD, half, writer.apply(TN_OP_SIGN, rest)), TN_FLOAT);
  const int32_t product = writer.apply(TN_OP_MUL, x, factor);
  writer.output(writer.apply(TN_OP_SELECT, writer.apply(TN_OP_IS_FINITE, product), product, x));
  const Program program = writer.finish();
  const Program gradient = derive_gradient(program, {true}, {0});
  EXPECT_NO_THROW(Program::from(gradient.view()));
  const Values inputs = {{7.5, -7.5}, {2, 2}};  // 7 = 3 * 2 + 1, -7 = -4 * 2 + 1
  const Values values = tenon::check::reference::evaluate(program.view(), 1, 2, inputs);
  EXPECT_EQ(values, (Values{{7.5 * 4, -7.5 * -3}}));
  EXPECT_EQ(tenon::check::reference::evaluate(gradient.view(), 1, 2, {inputs[0], inputs[1], values[0], {1, 1}}),
            (Values{{4, -3}}));
}

// A power has a derivative in its base of either sign if the exponent is whole, and none of its derivatives is NaN
// where the power is a number.
TEST(ProgramGradient, PowersOfAnySign) {
  ProgramWriter writer;
  const int32_t base = writer.input(TN_FULL);
  writer.output(writer.apply(TN_OP_POW, base, writer.input(TN_FULL)));
  const Program power = writer.finish();
  //                                    in a: b a^(b - 1); in b: a^b log(a)
  const Values at = {{2, -2, -2, 0, 0, 0, 0, -3, 1}, {3, 3, -2, 2, 1, 0, 3, 0, 0}};
  const Values slopes = gradients_at(power, at);
  EXPECT_EQ(slopes[0], (std::vector<double>{12, 12, 0.25, 0, 1, 0, 0, 0, 0}));
  EXPECT_EQ(slopes[1], (std::vector<double>{8 * std::log(2.0), 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(gradients_at(power, {{0}, {0.5}})[0][0], INFINITY) << "as that of a square root";
  EXPECT_TRUE(std::isnan(gradients_at(power, {{-1}, {0.5}})[0][0])) << "as the power itself";
  // Constant exponents, for which a simpler program is made.
  for (const double exponent : {0.0, 1.0, 2.0, 3.0, -1.0}) {
    SCOPED_TRACE(exponent);
    ProgramWriter fixed;
    const int32_t x = fixed.input(TN_FULL);
    fixed.output(fixed.apply(TN_OP_POW, x, fixed.constant(exponent)));
    const Values inputs = {{-2, 0.5, 1, 0}};
    const std::vector<double> got = gradients_at(fixed.finish(), inputs)[0];
    for (size_t i = 0; i < (exponent < 0 ? 3U : 4U); ++i)
      EXPECT_EQ(got[i], exponent == 0 ? 0 : exponent * std::pow(inputs[0][i], exponent - 1)) << inputs[0][i];
  }
}

TEST(Program, FoldsAPowerOfOne) {
  ProgramWriter writer;
  const int32_t x = writer.input(TN_FULL), y = writer.input(TN_PER_ROW);
  EXPECT_EQ(writer.apply(TN_OP_POW, x, writer.constant(1)), x);
  EXPECT_NE(writer.apply(TN_OP_POW, x, writer.constant(2)), x);
  EXPECT_NE(writer.apply(TN_OP_POW, writer.constant(1), y), y);
}

// An author's gradient program reads the gradient of every output; a missing gradient is replaced by 0.
TEST(ProgramGradient, OfAnAuthorWhereAnOutputHasNone) {
  ProgramWriter writer;
  const int32_t x = writer.input(TN_FULL), y = writer.input(TN_FULL);
  writer.output(writer.apply(TN_OP_MUL, x, y));
  writer.output(writer.apply(TN_OP_ADD, x, y));
  const Program forward = writer.finish();
  const Program author = derive_gradient(forward, {true, true}, {0, 1});
  check_author_gradient(author, forward);
  const Values arguments{{3}, {5}, {15}, {8}, {10}, {100}};
  const auto restricted = [&](const std::vector<bool>& given, const std::vector<int32_t>& wanted) {
    return restrict_gradient(author, forward, given, wanted);
  };
  const auto result = [&](const Program& program) {
    return tenon::check::reference::evaluate(program.view(), 1, 1, arguments);
  };
  EXPECT_EQ(result(restricted({true, true}, {0, 1})), (Values{{150}, {130}}));
  EXPECT_EQ(result(restricted({true, false}, {0, 1})), (Values{{50}, {30}}));
  EXPECT_EQ(result(restricted({false, true}, {1})), (Values{{100}}));
  EXPECT_EQ(trim_inputs(restricted({true, false}, {0})).kept, (std::vector<int32_t>{1, 4}))
      << "y and the gradient of the first output, not that of the second, which does not exist";
}

// A machine numbers the draws of all its layers, so a draw's number may exceed the count of the program's values.
TEST(ProgramGradient, DrawsHaveNone) {
  constexpr int32_t kDraw = 1 << 29;
  ProgramWriter writer;
  const int32_t x = writer.input(TN_FULL);
  writer.output(writer.apply(TN_OP_MUL, x, writer.apply(TN_OP_ADD, x, writer.uniform(kDraw, TN_FULL))));
  const Program program = writer.finish();
  const Values x_and_y{{3}, tenon::check::reference::evaluate(program.view(), 1, 1, {{3}})[0]};
  const double draw = x_and_y[1][0] / 3 - 3;
  EXPECT_NEAR(gradients_at(program, {{3}})[0][0], 2 * 3 + draw, 1e-12);
}

TEST(ProgramGradient, OnlyWhatIsWantedAndGiven) {
  ProgramWriter writer;
  const int32_t x = writer.input(TN_FULL);
  const int32_t y = writer.input(TN_FULL);
  writer.output(writer.apply(TN_OP_MUL, x, y));
  writer.output(writer.apply(TN_OP_EXP, x));
  const Program forward = writer.finish();
  const TrimmedProgram product = trim_inputs(derive_gradient(forward, {true, false}, {0}));
  EXPECT_EQ(product.kept, (std::vector<int32_t>{1, 4})) << "y and the gradient of the first output";
  EXPECT_EQ(product.program.outputs.size(), 1U);
}

TEST(Program, RefusesWhatIsWrong) {
  const tn_program_input input = {TN_FULL, TN_FLOAT, 0};
  const tn_program_output output = {0, TN_COMPUTE};
  const auto refused = [&](const std::vector<tn_instruction>& code, const char* why) {
    const tn_program program = {
        sizeof(tn_program), static_cast<uint32_t>(code.size()), code.data(), 1, 1, &input, &output};
    try {
      static_cast<void>(Program::from(program));
      ADD_FAILURE() << "accepted: " << why;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), TN_INVALID);
      const std::string name = code.empty() ? "output 0" : "(" + opcode_name(code.back().op) + ")";
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
    }
  };
  const tn_instruction x = {TN_OP_INPUT, TN_FLOAT, 0, 0, -1, -1, 0};
  refused({{TN_OP_INPUT, TN_FLOAT, 0, 1, -1, -1, 0}}, "no such input");
  refused({{TN_OP_NEG, TN_FLOAT, 0, 0, -1, -1, 0}}, "operand is not earlier");
  refused({x, {TN_OP_ADD, TN_FLOAT, 0, 0, -1, -1, 0}}, "missing operand");
  refused({x, {999, TN_FLOAT, 0, 0, -1, -1, 0}}, "unknown opcode");
  refused({x, {8, TN_FLOAT, 0, 0, -1, -1, 0}}, "unknown opcode between others");
  refused({x, {TN_OP_MOD + 1, TN_FLOAT, TN_SCALAR, 0, -1, -1, 0}}, "unknown opcode behind the last");
  refused({x, {TN_OP_MOD, TN_FLOAT, 0, 0, 0, -1, 0}}, "a remainder of floats");
  refused({x, {TN_OP_FLOOR_DIV, TN_FLOAT, 0, 0, 0, -1, 0}}, "a division of floats that rounds down");
  refused({x, {TN_OP_IS_FINITE, TN_FLOAT, 0, 0, -1, -1, 0}}, "a truth value that is a float");
  const tn_instruction row = {TN_OP_ROW, TN_INT, 0, -1, -1, -1, 0};
  for (const uint16_t op : {TN_OP_FLOOR, TN_OP_ROUND, TN_OP_SIN, TN_OP_COS})
    refused({x, row, {op, TN_INT, 0, 1, -1, -1, 0}}, "a function of an int");
  refused({x, row, {TN_OP_IS_FINITE, TN_LOGICAL, 0, 1, -1, -1, 0}}, "an int that is not finite");
  refused({x, row, {TN_OP_POW, TN_INT, 0, 1, 1, -1, 0}}, "a power of ints");
  refused({x, {TN_OP_NEG, TN_INT, 0, 0, -1, -1, 0}}, "wrong kind of result");
  refused({x, {TN_OP_AND, TN_LOGICAL, 0, 0, 0, -1, 0}}, "wrong kind of operand");
  refused({x, {TN_OP_REDUCE_SUM, TN_FLOAT, TN_FULL, 0, -1, -1, 0}}, "a reduction that reduces nothing");
  refused({x, {TN_OP_SELECT, TN_FLOAT, 0, 0, 0, 0, 0}}, "a condition that is a float");
  refused({x, {TN_OP_NEG, 7, 0, 0, -1, -1, 0}}, "unknown kind");
  refused({}, "an output that does not exist");
}

}  // namespace
}  // namespace tenon_tests

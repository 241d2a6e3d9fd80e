// Derives the gradient program of a pointwise program. SPDX-License-Identifier: Apache-2.0
#include <numbers>

#include "core/error.h"
#include "core/program.h"

namespace tenon::core {

namespace {

// Whether opcodes of the class have float results that depend smoothly on their operands.
bool computes(uint8_t op_class) { return op_class == TN_CLASS_ARITHMETIC || op_class == TN_CLASS_MATH; }

// The reverse sweep over the instructions of `forward`: appends the adjoint of every value to a writer.
class Reverse {
 public:
  Reverse(ProgramWriter& writer, const Program& forward, std::vector<int32_t> values)
      : writer_(writer), forward_(forward), values_(std::move(values)), adjoints_(values_.size(), -1) {}

  // Adds `gradient`, which counts as a value of extent `from`, to the adjoint of `value`.
  void add(int32_t value, int32_t gradient, uint8_t from) {
    const auto index = static_cast<size_t>(value);
    if (forward_.instructions[index].kind != TN_FLOAT) return;
    const uint8_t target = forward_.extents[index];
    if (cover(target, from) != target)  // the operand was broadcast: sum over the broadcast rows or columns
      gradient = writer_.reduce(TN_OP_REDUCE_SUM, writer_.expand(gradient, from), target);
    int32_t& adjoint = adjoints_[index];
    adjoint = adjoint < 0 ? gradient : writer_.apply(TN_OP_ADD, adjoint, gradient);
  }

  [[nodiscard]] int32_t adjoint(int32_t value) const { return adjoints_[static_cast<size_t>(value)]; }

  void run() {
    for (size_t i = forward_.instructions.size(); i-- > 0;)
      if (adjoints_[i] >= 0) step(forward_.instructions[i], values_[i], adjoints_[i], forward_.extents[i]);
  }

 private:
  [[nodiscard]] int32_t value(int32_t operand) const { return values_[static_cast<size_t>(operand)]; }
  int32_t zero() { return writer_.constant(0); }
  int32_t mul(int32_t a, int32_t b) { return writer_.apply(TN_OP_MUL, a, b); }
  int32_t div(int32_t a, int32_t b) { return writer_.apply(TN_OP_DIV, a, b); }
  int32_t select(int32_t c, int32_t a, int32_t b) { return writer_.apply(TN_OP_SELECT, c, a, b); }

  // Adds to the adjoints of the instruction's operands. y: the instruction's value; g: its adjoint.
  void step(const tn_instruction& in, int32_t y, int32_t g, uint8_t extent) {
    switch (in.op) {
      case TN_OP_ADD:
        add(in.a, g, extent);
        return add(in.b, g, extent);
      case TN_OP_SUB:
        add(in.a, g, extent);
        return add(in.b, writer_.apply(TN_OP_NEG, g), extent);
      case TN_OP_MUL:
        add(in.a, mul(g, value(in.b)), extent);
        return add(in.b, mul(g, value(in.a)), extent);
      case TN_OP_DIV: {
        const int32_t share = div(g, value(in.b));
        add(in.a, share, extent);
        return add(in.b, writer_.apply(TN_OP_NEG, mul(share, y)), extent);
      }
      case TN_OP_MIN:
      case TN_OP_MAX: {
        const bool least = in.op == TN_OP_MIN;
        const int32_t first = least ? writer_.apply(TN_OP_LESS_EQUAL, value(in.a), value(in.b))
                                    : writer_.apply(TN_OP_LESS_EQUAL, value(in.b), value(in.a));
        add(in.a, select(first, g, zero()), extent);
        return add(in.b, select(first, zero(), g), extent);
      }
      case TN_OP_POW:
        return power(in, y, g, extent);
      case TN_OP_SELECT: {
        add(in.b, select(value(in.a), g, zero()), extent);
        return add(in.c, select(value(in.a), zero(), g), extent);
      }
      case TN_OP_REDUCE_SUM:
        return add(in.a, g, forward_.extents[static_cast<size_t>(in.a)]);
      case TN_OP_REDUCE_MAX:
      case TN_OP_REDUCE_MIN:
        return reduce_extreme(in, y, g);
      default:
        return unary(in, y, g, extent);
    }
  }

  void unary(const tn_instruction& in, int32_t y, int32_t g, uint8_t extent) {
    const bool source = in.op == TN_OP_INPUT || in.op == TN_OP_UNIFORM;  // then `a` is not a value
    const int32_t x = in.a >= 0 && !source ? value(in.a) : -1;
    switch (in.op) {
      case TN_OP_NEG:
        return add(in.a, writer_.apply(TN_OP_NEG, g), extent);
      case TN_OP_ABS: {
        const int32_t above = writer_.apply(TN_OP_LESS, zero(), x);
        const int32_t below = writer_.apply(TN_OP_LESS, x, zero());
        return add(in.a, select(above, g, select(below, writer_.apply(TN_OP_NEG, g), zero())), extent);
      }
      case TN_OP_SQRT:
        return add(in.a, div(mul(g, writer_.constant(0.5)), y), extent);
      case TN_OP_EXP:
        return add(in.a, mul(g, y), extent);
      case TN_OP_EXPM1:
        return add(in.a, mul(g, writer_.apply(TN_OP_ADD, y, writer_.constant(1))), extent);
      case TN_OP_LOG:
        return add(in.a, div(g, x), extent);
      case TN_OP_LOG1P:
        return add(in.a, div(g, writer_.apply(TN_OP_ADD, x, writer_.constant(1))), extent);
      case TN_OP_TANH:
        return add(in.a, mul(g, writer_.apply(TN_OP_SUB, writer_.constant(1), mul(y, y))), extent);
      case TN_OP_ERF: {
        const int32_t bell = writer_.apply(TN_OP_EXP, writer_.apply(TN_OP_NEG, mul(x, x)));
        return add(in.a, mul(g, mul(writer_.constant(2 * std::numbers::inv_sqrtpi), bell)), extent);
      }
      case TN_OP_SIN:
        return add(in.a, mul(g, writer_.apply(TN_OP_COS, x)), extent);
      case TN_OP_COS:
        return add(in.a, writer_.apply(TN_OP_NEG, mul(g, writer_.apply(TN_OP_SIN, x))), extent);
      case TN_OP_CAST:
        if (forward_.instructions[static_cast<size_t>(in.a)].kind == TN_FLOAT && in.kind == TN_FLOAT)
          add(in.a, g, extent);
        return;
      case TN_OP_FLOOR:
      case TN_OP_ROUND:
      case TN_OP_SIGN:
        return;  // constant between their steps
      default:
        if (computes(tn_op_info(in.op).op_class)) fail(TN_INTERNAL, "no derivative of ", opcode_name(in.op));
        return;  // sources, comparisons, logic and TN_OP_STOP: the derivative is 0
    }
  }

  // y = a ^ b. In a: b a ^ (b - 1), but 0 where b is 0, also at a = 0, where the power is infinite. In b: y log(a)
  // where a is positive, else 0.
  void power(const tn_instruction& in, int32_t y, int32_t g, uint8_t extent) {
    const int32_t a = value(in.a), b = value(in.b);
    const tn_instruction& exponent = forward_.instructions[static_cast<size_t>(in.b)];
    const bool known = exponent.op == TN_OP_CONSTANT;
    const int32_t less =
        known ? writer_.constant(exponent.number - 1) : writer_.apply(TN_OP_SUB, b, writer_.constant(1));
    const int32_t slope = mul(b, writer_.apply(TN_OP_POW, a, less));
    const bool never_zero = known && exponent.number != 0;
    add(in.a, mul(g, never_zero ? slope : select(writer_.apply(TN_OP_EQUAL, b, zero()), zero(), slope)), extent);
    const int32_t growth = mul(y, writer_.apply(TN_OP_LOG, a));
    add(in.b, mul(g, select(writer_.apply(TN_OP_LESS, zero(), a), growth, zero())), extent);
  }

  void reduce_extreme(const tn_instruction& in, int32_t y, int32_t g) {
    const int32_t x = value(in.a);
    const uint8_t extent = forward_.extents[static_cast<size_t>(in.a)];
    const int32_t reached = writer_.apply(TN_OP_EQUAL, x, y);
    const int32_t ones = select(reached, writer_.constant(1), zero());
    const int32_t share = div(g, writer_.reduce(TN_OP_REDUCE_SUM, ones, in.extent));
    add(in.a, select(reached, share, zero()), extent);
  }

  ProgramWriter& writer_;
  const Program& forward_;
  std::vector<int32_t> values_;    // per forward value: its number in the gradient program
  std::vector<int32_t> adjoints_;  // per forward value: number of its adjoint; -1: none yet
};

}  // namespace

Program derive_gradient(const Program& forward, const std::vector<bool>& given, const std::vector<int32_t>& wanted) {
  ProgramWriter writer;
  std::vector<int32_t> inputs;
  for (const tn_program_input& input : forward.inputs) inputs.push_back(writer.input(input.extent, input.kind));
  std::vector<int32_t> gradients;
  for (size_t j = 0; j < forward.outputs.size(); ++j) {
    const auto value = static_cast<size_t>(forward.outputs[j].value);
    writer.input(forward.extents[value], forward.instructions[value].kind);
  }
  for (size_t j = 0; j < forward.outputs.size(); ++j) gradients.push_back(writer.input(forward.output_extent(j)));

  Reverse reverse(writer, forward, writer.inline_program(forward, inputs));
  for (size_t j = 0; j < forward.outputs.size(); ++j)
    if (given[j]) reverse.add(forward.outputs[j].value, gradients[j], forward.output_extent(j));
  reverse.run();

  // An input may be loaded by several instructions; its gradient is the sum over them.
  for (const int32_t input : wanted) {
    int32_t sum = -1;
    for (size_t i = 0; i < forward.instructions.size(); ++i) {
      const tn_instruction& in = forward.instructions[i];
      const int32_t adjoint = reverse.adjoint(static_cast<int32_t>(i));
      if (in.op != TN_OP_INPUT || in.a != input || adjoint < 0) continue;
      sum = sum < 0 ? adjoint : writer.apply(TN_OP_ADD, sum, adjoint);
    }
    if (sum < 0) sum = writer.constant(0);
    writer.output(writer.expand(sum, forward.inputs[static_cast<size_t>(input)].extent));
  }
  return writer.finish();
}

void check_author_gradient(const Program& author, const Program& forward) {
  const size_t expected = forward.inputs.size() + 2 * forward.outputs.size();
  if (author.inputs.size() != expected)
    fail(TN_PLUGIN_FAULT, "the gradient program has ", author.inputs.size(), " inputs; expected ", expected,
         " (inputs, outputs, gradients of the outputs)");
  if (author.outputs.size() != forward.inputs.size())
    fail(TN_PLUGIN_FAULT, "the gradient program has ", author.outputs.size(), " outputs; expected ",
         forward.inputs.size(), ", one for each input");
  for (size_t i = 0; i < expected; ++i) {
    const bool input = i < forward.inputs.size();
    const size_t j = input ? 0 : (i - forward.inputs.size()) % forward.outputs.size();
    const uint8_t extent = input ? forward.inputs[i].extent : forward.output_extent(j);
    if (author.inputs[i].extent != extent)
      fail(TN_PLUGIN_FAULT, "input ", i, " of the gradient program has extent ", int{author.inputs[i].extent},
           "; expected ", int{extent});
  }
  for (size_t i = 0; i < forward.inputs.size(); ++i) {
    const uint8_t extent = author.output_extent(i);
    if (cover(extent, forward.inputs[i].extent) != forward.inputs[i].extent)
      fail(TN_PLUGIN_FAULT, "output ", i, " of the gradient program has extent ", int{extent}, "; expected ",
           int{forward.inputs[i].extent}, ", that of the input");
    if (author.instructions[static_cast<size_t>(author.outputs[i].value)].kind != TN_FLOAT)
      fail(TN_PLUGIN_FAULT, "output ", i, " of the gradient program is not a float");
  }
}

Program restrict_gradient(const Program& author, const Program& forward, const std::vector<bool>& given,
                          const std::vector<int32_t>& wanted) {
  ProgramWriter writer;
  std::vector<int32_t> inputs;
  const size_t first_gradient = forward.inputs.size() + forward.outputs.size();
  for (size_t i = 0; i < author.inputs.size(); ++i) {
    const int32_t value = writer.input(author.inputs[i].extent, author.inputs[i].kind);
    const bool missing = i >= first_gradient && !given[i - first_gradient];
    inputs.push_back(missing ? writer.expand(writer.constant(0), author.inputs[i].extent) : value);
  }
  const std::vector<int32_t> values = writer.inline_program(author, inputs);
  for (const int32_t input : wanted) {
    const auto index = static_cast<size_t>(input);
    const int32_t value = values[static_cast<size_t>(author.outputs[index].value)];
    writer.output(writer.expand(value, forward.inputs[index].extent));
  }
  return writer.finish();
}

}  // namespace tenon::core

// Pointwise: programs over a grid that follows from the shapes of their operands.
// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"
#include "core/graph/differentiator.h"

namespace tenon::core {

namespace {

const char* extent_name(uint8_t extent) {
  constexpr const char* kNames[] = {"SCALAR", "PER_COLUMN", "PER_ROW", "FULL"};
  return kNames[extent];
}

Shape shape_of_extent(const Shape& whole, size_t leading, uint8_t extent) {
  const auto split = whole.begin() + static_cast<std::ptrdiff_t>(leading);
  switch (extent) {
    case TN_FULL:
      return whole;
    case TN_PER_ROW:
      return {whole.begin(), split};
    case TN_PER_COLUMN:
      return {split, whole.end()};
    default:
      return {};
  }
}

// Whether a tensor of `shape` can be read as one of shape `expected`: `expected`, or `expected` followed by ones.
bool reads_as(const Shape& shape, const Shape& expected) {
  if (shape.size() < expected.size()) return false;
  for (size_t i = 0; i < shape.size(); ++i)
    if (!same(shape[i], i < expected.size() ? expected[i] : tn_dim_constant(1))) return false;
  return true;
}

}  // namespace

// Operands and results by extent, where R... are the first `leading` dimensions:
//   FULL [R..., C...], PER_ROW [R...], PER_COLUMN [C...], SCALAR []
// The grid has product(R...) rows and product(C...) columns. Without a FULL operand, R... comes from the first PER_ROW
// operand and C... from the first PER_COLUMN operand.
std::vector<ValueId> GraphWriter::pointwise(const std::shared_ptr<const Program>& program,
                                            const std::vector<ValueId>& inputs, int32_t leading,
                                            std::shared_ptr<const Program> author_gradient) {
  if (leading < 0) fail(TN_INVALID, "pointwise: leading is ", leading);
  const auto lead = static_cast<size_t>(leading);
  const auto first_with = [&](uint8_t extent) -> const Shape* {
    for (size_t i = 0; i < inputs.size(); ++i)
      if (program->inputs[i].extent == extent) return &graph_.spec(inputs[i]).shape;
    return nullptr;
  };
  Shape whole;
  if (const Shape* full = first_with(TN_FULL)) {
    whole = *full;
  } else {
    if (const Shape* rows = first_with(TN_PER_ROW)) whole.assign(rows->begin(), rows->end());
    if (whole.size() > lead) whole.resize(lead);
    if (const Shape* columns = first_with(TN_PER_COLUMN)) whole.insert(whole.end(), columns->begin(), columns->end());
  }
  if (whole.size() < lead) fail(TN_INVALID, "pointwise: ", leading, " leading dimensions of ", to_string(whole));
  auto outputs = pointwise_on(program, inputs, whole, leading);
  graph_.nodes.back().as<Pointwise>()->author_gradient = std::move(author_gradient);
  return outputs;
}

std::vector<ValueId> GraphWriter::pointwise_on(const std::shared_ptr<const Program>& program,
                                               const std::vector<ValueId>& inputs, const Shape& whole,
                                               int32_t leading) {
  const auto lead = static_cast<size_t>(leading);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const tn_program_input& input = program->inputs[i];
    const Spec& spec = graph_.spec(inputs[i]);
    const Shape expected = shape_of_extent(whole, lead, input.extent);
    if (!reads_as(spec.shape, expected))
      fail(TN_INVALID, "pointwise input ", i, " (", extent_name(input.extent), "): expected ", to_string(expected),
           ", got ", to_string(spec.shape));
    const bool fits = input.kind == TN_FLOAT || (input.kind == TN_INT && !is_float(spec.dtype)) ||
                      (input.kind == TN_LOGICAL && spec.dtype == TN_BOOL);
    if (!fits) fail(TN_INVALID, "pointwise input ", i, ": element type ", dtype_name(spec.dtype), " does not fit");
  }
  Pointwise pointwise;
  pointwise.rows = elements(whole.data(), lead);
  pointwise.columns = elements(whole.data() + lead, whole.size() - lead);
  pointwise.whole = whole;
  pointwise.leading = leading;
  pointwise.program = program;
  append(std::move(pointwise), inputs);
  std::vector<ValueId> outputs;
  for (size_t i = 0; i < program->outputs.size(); ++i) {
    const tn_dtype dtype = program->outputs[i].dtype == TN_COMPUTE ? compute_ : program->outputs[i].dtype;
    outputs.push_back(output({dtype, shape_of_extent(whole, lead, program->output_extent(i)), TN_DENSE, 0, {}}));
  }
  return outputs;
}

ValueId GraphWriter::convert(ValueId value, double scale, double offset) {
  ProgramWriter writer;
  int32_t x = writer.input(TN_FULL);
  if (scale != 1) x = writer.apply(TN_OP_MUL, x, writer.constant(scale));
  if (offset != 0) x = writer.apply(TN_OP_ADD, x, writer.constant(offset));
  writer.output(x);
  return pointwise(std::make_shared<Program>(writer.finish()), {value}, graph_.spec(value).shape.empty() ? 0 : 1)[0];
}

namespace {

// Whether a value is 0 for all inputs: the constant 0, or its broadcast to a larger extent.
bool is_zero(const Program& program, const tn_instruction& in) {
  if (in.op == TN_OP_SELECT && in.b == in.c) return is_zero(program, program.instructions[static_cast<size_t>(in.b)]);
  return in.op == TN_OP_CONSTANT && in.number == 0;
}

}  // namespace

void Pointwise::derive(Differentiator& gradients, const Node& node) const {
  std::vector<int32_t> wanted;
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (program->inputs[i].kind == TN_FLOAT && gradients.needed(node.inputs[i]))
      wanted.push_back(static_cast<int32_t>(i));
  if (wanted.empty()) return;
  std::vector<bool> given;
  for (const ValueId output : node.outputs)
    given.push_back(output != kNoValue && gradients.gradient(output) != kNoValue);
  Program derived = author_gradient ? restrict_gradient(*author_gradient, *program, given, wanted)
                                    : derive_gradient(*program, given, wanted);
  const std::vector<tn_program_output> derivatives = std::exchange(derived.outputs, {});
  // Inputs of the derived program: the inputs of the node, its outputs, the gradients of its outputs.
  const auto operand = [&](int32_t input) {
    const auto at = static_cast<size_t>(input);
    const size_t first_output = node.inputs.size();
    const size_t first_gradient = first_output + node.outputs.size();
    return at < first_output     ? node.inputs[at]
           : at < first_gradient ? node.outputs[at - first_output]
                                 : gradients.gradient(node.outputs[at - first_gradient]);
  };
  // A gradient that is equal to an operand is that operand, without a copy. A gradient that is always 0 is dropped
  // (that of the maximum which softmax subtracts, for example), unless the gradient of the input itself is wanted.
  std::vector<ValueId> contributions(wanted.size(), kNoValue);
  std::vector<bool> none(wanted.size(), false);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const tn_instruction& in = derived.instructions[static_cast<size_t>(derivatives[i].value)];
    none[i] = is_zero(derived, in) && !gradients.is_wanted(node.inputs[static_cast<size_t>(wanted[i])]);
    if (none[i]) continue;
    if (in.op == TN_OP_INPUT && derived.inputs[static_cast<size_t>(in.a)].kind == TN_FLOAT)
      contributions[i] = operand(in.a);
    else
      derived.outputs.push_back(derivatives[i]);
  }
  if (!derived.outputs.empty()) {
    TrimmedProgram trimmed = trim_inputs(derived);
    std::vector<ValueId> inputs;
    for (const int32_t kept : trimmed.kept) inputs.push_back(operand(kept));
    const std::vector<ValueId> made =
        gradients.writer(node.layer)
            .pointwise_on(std::make_shared<Program>(std::move(trimmed.program)), inputs, whole, leading);
    size_t next = 0;
    for (size_t i = 0; i < wanted.size(); ++i)
      if (contributions[i] == kNoValue && !none[i]) contributions[i] = made[next++];
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (none[i]) continue;
    const ValueId input = node.inputs[static_cast<size_t>(wanted[i])];
    // An operand may have trailing ones that its gradient lacks.
    gradients.add(input, gradients.writer(node.layer).view(contributions[i], gradients.graph().spec(input).shape),
                  node.layer);
  }
}

}  // namespace tenon::core

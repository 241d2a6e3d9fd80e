// SPDX-License-Identifier: Apache-2.0
#include "core/program.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/error.h"

namespace tenon::core {

bool Program::is_flat() const {
  return std::all_of(extents.begin(), extents.end(),
                     [](uint8_t extent) { return extent == TN_FULL || extent == TN_SCALAR; });
}

namespace {

constexpr size_t kMaxInstructions = 65536;

// Checks instruction `index` against the earlier ones and returns its extent.
uint8_t check_instruction(Program& program, size_t index) {
  tn_instruction& in = program.instructions[index];
  const auto bad = [&](const auto&... why) {
    fail(TN_INVALID, "program instruction ", index, " (", opcode_name(in.op), "): ", why...);
  };
  const tn_opcode op = tn_op_info(in.op);
  if (op.operands < 0) bad("unknown opcode");
  if (in.kind > TN_LOGICAL) bad("unknown kind ", int{in.kind});
  const int32_t operands[3] = {in.a, in.b, in.c};
  uint8_t extent = TN_SCALAR;
  for (int i = 0; i < op.operands; ++i) {
    if (operands[i] < 0 || static_cast<size_t>(operands[i]) >= index)
      bad("operand ", i, " is value ", operands[i], ", which is not an earlier one");
    const auto from = static_cast<size_t>(operands[i]);
    extent = cover(extent, program.extents[from]);
    const uint8_t kind = program.instructions[from].kind;
    if (in.op == TN_OP_SELECT) {
      if (kind != (i == 0 ? uint8_t{TN_LOGICAL} : in.kind)) bad("operand ", i, " has the wrong kind ", int{kind});
      continue;
    }
    if (((1U << kind) & op.accepts) == 0) bad("operand ", i, " has the wrong kind ", int{kind});
    if (i > 0 && kind != program.instructions[static_cast<size_t>(in.a)].kind) bad("operands of different kinds");
  }
  if (in.op == TN_OP_INPUT) {
    if (in.a < 0 || static_cast<size_t>(in.a) >= program.inputs.size()) bad("there is no input ", in.a);
    const tn_program_input& input = program.inputs[static_cast<size_t>(in.a)];
    if (in.kind != input.kind) bad("the input has kind ", int{input.kind});
    return input.extent;
  }
  if (in.op == TN_OP_ROW || in.op == TN_OP_COLUMN) {
    if (in.kind != TN_INT) bad("an index is an int");
    return in.op == TN_OP_ROW ? TN_PER_ROW : TN_PER_COLUMN;
  }
  if (in.op == TN_OP_UNIFORM) {
    if (in.kind != TN_FLOAT) bad("a draw is a float");
    if (in.extent > TN_FULL) bad("unknown extent ", int{in.extent});
    if (in.a < 0) bad("draw ", in.a, "; expected a number from 0");
    return in.extent;
  }
  if (op.operands > 0 && in.op != TN_OP_SELECT && op.result != TN_KIND_STATED) {
    const uint8_t expected =
        op.result >= 0 ? static_cast<uint8_t>(op.result) : program.instructions[static_cast<size_t>(in.a)].kind;
    if (in.kind != expected) bad("kind ", int{in.kind}, " where the operation gives ", int{expected});
  }
  if (op.op_class == TN_CLASS_REDUCTION) {
    if (in.extent > TN_FULL || in.extent == extent || cover(in.extent, extent) != extent)
      bad("cannot reduce extent ", int{extent}, " to ", int{in.extent});
    return in.extent;
  }
  return extent;
}

}  // namespace

std::string opcode_name(uint16_t op) {
  const tn_opcode row = tn_op_info(op);
  return row.op_class == TN_CLASS_NONE ? text("opcode ", op) : row.name;
}

// PER_COLUMN and PER_ROW are one bit each, FULL is both bits.
uint8_t cover(uint8_t a, uint8_t b) { return a | b; }

bool Program::draws() const {
  return std::any_of(instructions.begin(), instructions.end(),
                     [](const tn_instruction& in) { return tn_op_info(in.op).op_class == TN_CLASS_RANDOM; });
}

tn_program Program::view() const {
  tn_program view = {};
  view.size = sizeof view;
  view.instructions_count = static_cast<uint32_t>(instructions.size());
  view.instructions = instructions.data();
  view.inputs_count = static_cast<uint32_t>(inputs.size());
  view.outputs_count = static_cast<uint32_t>(outputs.size());
  view.inputs = inputs.data();
  view.outputs = outputs.data();
  return view;
}

Program Program::from(const tn_program& given) {
  if (!TN_HAS(&given, tn_program, outputs)) fail(TN_INVALID, "a tn_program states a size of ", given.size, " bytes");
  if (given.instructions_count > kMaxInstructions)
    fail(TN_INVALID, "a program of ", given.instructions_count, " instructions; at most ", kMaxInstructions);
  if (given.inputs_count > kMaxInstructions || given.outputs_count > kMaxInstructions)
    fail(TN_INVALID, "a program of ", given.inputs_count, " inputs and ", given.outputs_count, " outputs; at most ",
         kMaxInstructions, " of each");
  if ((given.instructions_count > 0 && given.instructions == nullptr) ||
      (given.inputs_count > 0 && given.inputs == nullptr) || (given.outputs_count > 0 && given.outputs == nullptr))
    fail(TN_INVALID, "a program with a null list");
  Program program;
  program.instructions.assign(given.instructions, given.instructions + given.instructions_count);
  program.inputs.assign(given.inputs, given.inputs + given.inputs_count);
  program.outputs.assign(given.outputs, given.outputs + given.outputs_count);
  for (const tn_program_input& input : program.inputs)
    check_unused(input.reserved, "reserved member of a tn_program_input");
  for (size_t i = 0; i < program.inputs.size(); ++i)
    if (program.inputs[i].extent > TN_FULL || program.inputs[i].kind > TN_LOGICAL)
      fail(TN_INVALID, "program input ", i, " has an unknown extent or kind");
  program.extents.reserve(program.instructions.size());
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const uint8_t extent = check_instruction(program, i);
    program.extents.push_back(extent);
    program.instructions[i].extent = extent;
  }
  for (size_t i = 0; i < program.outputs.size(); ++i)
    if (program.outputs[i].value < 0 || static_cast<size_t>(program.outputs[i].value) >= program.instructions.size())
      fail(TN_INVALID, "program output ", i, " is value ", program.outputs[i].value, ", which does not exist");
  return program;
}

namespace {

size_t hash_of(const tn_instruction& in) {
  uint64_t hash = in.op;
  for (const uint64_t part :
       {uint64_t{in.kind}, uint64_t{in.extent}, static_cast<uint64_t>(in.a), static_cast<uint64_t>(in.b),
        static_cast<uint64_t>(in.c), std::bit_cast<uint64_t>(in.number)})
    hash = (hash ^ part ^ part >> 32) * 0x9E3779B97F4A7C15u;
  return static_cast<size_t>(hash ^ hash >> 32);
}

// Numbers are equal if their bits are: 0 and -0 differ, and a NaN is equal to itself.
bool equal(const tn_instruction& x, const tn_instruction& y) {
  return x.op == y.op && x.kind == y.kind && x.extent == y.extent && x.a == y.a && x.b == y.b && x.c == y.c &&
         std::bit_cast<uint64_t>(x.number) == std::bit_cast<uint64_t>(y.number);
}

// Returns the slot of an instruction in a hash table with linear probing: its own, or the free one for it. The size of
// the table is a power of two.
size_t slot_of(const tn_instruction& in, const std::vector<int32_t>& slots, const Program& program) {
  const size_t mask = slots.size() - 1;
  size_t slot = hash_of(in) & mask;
  while (slots[slot] >= 0 && !equal(program.instructions[static_cast<size_t>(slots[slot])], in))
    slot = (slot + 1) & mask;
  return slot;
}

}  // namespace

void ProgramWriter::grow() {
  constexpr size_t kFirst = 32;
  std::vector<int32_t> larger(std::max(kFirst, 2 * slots_.size()), -1);
  for (const int32_t number : slots_)
    if (number >= 0) larger[slot_of(program_.instructions[static_cast<size_t>(number)], larger, program_)] = number;
  slots_ = std::move(larger);
  program_.instructions.reserve(slots_.size() / 2);
  program_.extents.reserve(slots_.size() / 2);
}

int32_t ProgramWriter::append(const tn_instruction& instruction, uint8_t extent) {
  if (2 * program_.instructions.size() >= slots_.size()) grow();
  tn_instruction in = instruction;
  in.extent = extent;
  int32_t& number = slots_[slot_of(in, slots_, program_)];
  if (number >= 0) return number;
  number = static_cast<int32_t>(program_.instructions.size());
  program_.instructions.push_back(in);
  program_.extents.push_back(extent);
  return number;
}

int32_t ProgramWriter::input(uint8_t extent, uint8_t kind) {
  const auto number = static_cast<int32_t>(program_.inputs.size());
  program_.inputs.push_back({extent, kind, 0});
  return append({TN_OP_INPUT, kind, 0, number, -1, -1, 0}, extent);
}

int32_t ProgramWriter::constant(double number, uint8_t kind) {
  return append({TN_OP_CONSTANT, kind, 0, -1, -1, -1, number}, TN_SCALAR);
}

int32_t ProgramWriter::uniform(int32_t draw, uint8_t extent) {
  return append({TN_OP_UNIFORM, TN_FLOAT, 0, draw, -1, -1, 0}, extent);
}

bool ProgramWriter::is_constant(int32_t value, double number) const {
  const tn_instruction& in = program_.instructions[static_cast<size_t>(value)];
  return in.op == TN_OP_CONSTANT && in.number == number;
}

// Returns the operand to which op(a, b) is equal (x + 0, x * 1, x ^ 1), or -1. Keeps multiplications by 0: 0 * NaN is
// NaN.
int32_t ProgramWriter::folded(uint16_t op, int32_t a, int32_t b) const {
  const auto keeps = [&](int32_t value, int32_t other) { return cover(extent(value), extent(other)) == extent(value); };
  if (op == TN_OP_ADD && is_constant(a, 0) && keeps(b, a)) return b;
  if ((op == TN_OP_ADD || op == TN_OP_SUB) && is_constant(b, 0) && keeps(a, b)) return a;
  if (op == TN_OP_MUL && is_constant(a, 1) && keeps(b, a)) return b;
  if ((op == TN_OP_MUL || op == TN_OP_DIV || op == TN_OP_POW) && is_constant(b, 1) && keeps(a, b)) return a;
  return -1;
}

int32_t ProgramWriter::apply(uint16_t op, int32_t a, int32_t b, int32_t c) {
  if (const int32_t simple = folded(op, a, b); simple >= 0) return simple;
  const int8_t stated = tn_op_info(op).result;
  const uint8_t result = stated >= 0 ? static_cast<uint8_t>(stated) : kind(op == TN_OP_SELECT ? b : a);
  uint8_t extent = this->extent(a);
  if (b >= 0) extent = cover(extent, this->extent(b));
  if (c >= 0) extent = cover(extent, this->extent(c));
  return append({op, result, 0, a, b, c, 0}, extent);
}

int32_t ProgramWriter::cast(int32_t a, uint8_t to) {
  return kind(a) == to ? a : append({TN_OP_CAST, to, 0, a, -1, -1, 0}, extent(a));
}

int32_t ProgramWriter::reduce(uint16_t op, int32_t a, uint8_t to) {
  return append({op, kind(a), to, a, -1, -1, 0}, to);
}

int32_t ProgramWriter::expand(int32_t a, uint8_t to) {
  if (cover(extent(a), to) == extent(a)) return a;
  // Selects `a` by a condition of the missing extent that is always true: an index is equal to itself.
  int32_t spread = -1;
  for (const uint16_t index : {uint16_t{TN_OP_ROW}, uint16_t{TN_OP_COLUMN}}) {
    const uint8_t axis = index == TN_OP_ROW ? TN_PER_ROW : TN_PER_COLUMN;
    if (cover(to, axis) != to || cover(extent(a), axis) == extent(a)) continue;
    const int32_t position = append({index, TN_INT, 0, -1, -1, -1, 0}, axis);
    const int32_t always = apply(TN_OP_EQUAL, position, position);
    spread = spread < 0 ? always : apply(TN_OP_OR, spread, always);
  }
  return apply(TN_OP_SELECT, spread, a, a);
}

std::vector<int32_t> ProgramWriter::inline_program(const Program& program, const std::vector<int32_t>& inputs) {
  std::vector<int32_t> values;
  values.reserve(program.instructions.size());
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    tn_instruction in = program.instructions[i];
    if (in.op == TN_OP_INPUT) {
      values.push_back(inputs[static_cast<size_t>(in.a)]);
      continue;
    }
    const int operands = tn_op_info(in.op).operands;
    if (operands > 0) in.a = values[static_cast<size_t>(in.a)];
    if (operands > 1) in.b = values[static_cast<size_t>(in.b)];
    if (operands > 2) in.c = values[static_cast<size_t>(in.c)];
    values.push_back(append(in, program.extents[i]));
  }
  return values;
}

namespace {

// Calls visit(operand) for each operand of an instruction that is the number of a value.
template <typename Instruction, typename Visit>
void each_operand(Instruction& in, const Visit& visit) {
  const int count = tn_op_info(in.op).operands;
  if (count > 0) visit(in.a);
  if (count > 1) visit(in.b);
  if (count > 2) visit(in.c);
}

Program without_dead(const Program& program) {
  constexpr int32_t kDead = -1;
  std::vector<int32_t> number(program.instructions.size(), kDead);  // the new number of each instruction
  const auto keep = [&](int32_t value) { number[static_cast<size_t>(value)] = 0; };
  for (const tn_program_output& output : program.outputs) keep(output.value);
  for (size_t i = program.instructions.size(); i-- > 0;)
    if (number[i] != kDead) each_operand(program.instructions[i], keep);
  Program result;
  result.inputs = program.inputs;
  const size_t count = number.size() - static_cast<size_t>(std::count(number.begin(), number.end(), kDead));
  result.instructions.reserve(count);
  result.extents.reserve(count);
  result.outputs.reserve(program.outputs.size());
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    if (number[i] == kDead) continue;
    number[i] = static_cast<int32_t>(result.instructions.size());
    tn_instruction& in = result.instructions.emplace_back(program.instructions[i]);
    each_operand(in, [&](int32_t& operand) { operand = number[static_cast<size_t>(operand)]; });
    result.extents.push_back(program.extents[i]);
  }
  for (const tn_program_output& output : program.outputs)
    result.outputs.push_back({number[static_cast<size_t>(output.value)], output.dtype});
  return result;
}

}  // namespace

Program ProgramWriter::finish() const { return without_dead(program_); }

TrimmedProgram ProgramWriter::finish_trimmed() const { return trim_inputs(program_); }

TrimmedProgram trim_inputs(const Program& program) {
  TrimmedProgram result{without_dead(program), {}};
  std::vector<int32_t> number(program.inputs.size(), -1);
  for (const tn_instruction& in : result.program.instructions)
    if (in.op == TN_OP_INPUT) number[static_cast<size_t>(in.a)] = 0;
  result.program.inputs.clear();
  result.kept.reserve(number.size());
  for (size_t i = 0; i < number.size(); ++i) {
    if (number[i] < 0) continue;
    number[i] = static_cast<int32_t>(result.kept.size());
    result.kept.push_back(static_cast<int32_t>(i));
    result.program.inputs.push_back(program.inputs[i]);
  }
  for (tn_instruction& in : result.program.instructions)
    if (in.op == TN_OP_INPUT) in.a = number[static_cast<size_t>(in.a)];
  return result;
}

}  // namespace tenon::core

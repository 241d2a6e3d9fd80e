// Pointwise programs in owning, checked form, and the writer that makes them. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/program.h>

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace tenon {

// The smallest extent that covers both.
[[nodiscard]] uint8_t cover(uint8_t a, uint8_t b);

// A program that was checked: operands come before their use, kinds fit, reductions shrink. `extents` holds the
// derived extent of every value, and every instruction's `extent` and `kind` say the same.
struct Program {
  std::vector<tn_instruction> instructions;
  std::vector<tn_program_input> inputs;
  std::vector<tn_program_output> outputs;
  std::vector<uint8_t> extents;

  // Whether it draws random numbers.
  [[nodiscard]] bool draws() const;
  // A view for the plugin interface, valid while this Program is unchanged.
  [[nodiscard]] tn_program view() const;
  // Copies and checks; TN_INVALID names the instruction and what is wrong with it.
  static Program from(const tn_program& given);

  // Whether every value is FULL or SCALAR, so that any cut of the grid into rows and columns will do.
  [[nodiscard]] bool is_flat() const;
  [[nodiscard]] uint8_t output_extent(size_t output) const {
    return extents[static_cast<size_t>(outputs[output].value)];
  }
};

// Writes programs inside the host. Equal instructions become one value; trivial arithmetic is folded.
class ProgramWriter {
 public:
  int32_t input(uint8_t extent, uint8_t kind = TN_FLOAT);
  int32_t constant(double number, uint8_t kind = TN_FLOAT);
  int32_t uniform(int32_t draw, uint8_t extent);
  // Elementwise operations; the result's kind follows from the operation.
  int32_t apply(uint16_t op, int32_t a, int32_t b = -1, int32_t c = -1);
  int32_t cast(int32_t a, uint8_t to);
  int32_t reduce(uint16_t op, int32_t a, uint8_t to);
  // The value with a larger extent.
  int32_t expand(int32_t a, uint8_t to);
  void output(int32_t value, tn_dtype dtype = TN_COMPUTE) { program_.outputs.push_back({value, dtype}); }

  [[nodiscard]] uint8_t extent(int32_t value) const { return program_.extents[static_cast<size_t>(value)]; }
  [[nodiscard]] uint8_t kind(int32_t value) const { return program_.instructions[static_cast<size_t>(value)].kind; }
  // Copies every instruction of `program`, its inputs replaced by the given values; gives the new number of each.
  std::vector<int32_t> inline_program(const Program& program, const std::vector<int32_t>& inputs);

  // The finished program without dead instructions. Inputs keep their numbers, read or not.
  [[nodiscard]] Program finish() const;

 private:
  int32_t append(const tn_instruction& instruction, uint8_t extent);
  [[nodiscard]] bool is_constant(int32_t value, double number) const;
  [[nodiscard]] int32_t folded(uint16_t op, int32_t a, int32_t b) const;

  using Key = std::tuple<uint16_t, uint8_t, uint8_t, int32_t, int32_t, int32_t, uint64_t>;
  Program program_;
  std::map<Key, int32_t> known_;
};

// The program with only the inputs that it reads; kept[i] is the old number of input i.
struct TrimmedProgram {
  Program program;
  std::vector<int32_t> kept;
};
[[nodiscard]] TrimmedProgram trim_inputs(const Program& program);

// The gradient of a program. Its inputs are, in this order and all of them present: the inputs of `forward`, its
// outputs (read only where an author's program reads them), and the gradients of its outputs. Its outputs are the
// gradients of the inputs in `wanted`, in that order, each with the extent of its input.
// Reverse mode over the list (Griewank & Walther, "Evaluating Derivatives", 2008, chapter 3): values are computed
// anew from the inputs; an operand that was spread over rows or columns gets the sum over them.
// given[j]: whether output j has a gradient at all; the others count as zero.
[[nodiscard]] Program derive_gradient(const Program& forward, const std::vector<bool>& given,
                                      const std::vector<int32_t>& wanted);

// The same for an author's gradient program (tn_pointwise.gradient): keeps the outputs in `wanted`, replaces
// gradients that are not given by zero. Checked against `forward` when it was recorded.
[[nodiscard]] Program restrict_gradient(const Program& author, const Program& forward, const std::vector<bool>& given,
                                        const std::vector<int32_t>& wanted);

// Throws TN_INVALID when `author` does not have the inputs and outputs that a gradient of `forward` must have.
void check_author_gradient(const Program& author, const Program& forward);

}  // namespace tenon

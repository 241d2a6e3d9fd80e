// Pointwise programs in owning, checked form, and the writer that makes them. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/program.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::core {

// Returns the name of an opcode for messages: "add"; "opcode 999" if tenon/program.h does not have it.
[[nodiscard]] std::string opcode_name(uint16_t op);

// Returns the smallest extent that covers both.
[[nodiscard]] uint8_t cover(uint8_t a, uint8_t b);

// A validated program: operands precede their use, kinds match, reductions shrink the extent. `extents` holds the
// derived extent of every value; the `extent` of every instruction is equal to it.
struct Program {
  std::vector<tn_instruction> instructions;
  std::vector<tn_program_input> inputs;
  std::vector<tn_program_output> outputs;
  std::vector<uint8_t> extents;

  // Whether it draws random numbers.
  [[nodiscard]] bool draws() const;
  // A view for the plugin interface, valid while this Program is unchanged.
  [[nodiscard]] tn_program view() const;
  // Copies and validates a program. Throws TN_INVALID naming the instruction and the fault.
  static Program from(const tn_program& given);

  // Whether every value is FULL or SCALAR. Such a program gives the same values for every division of its elements into
  // rows and columns.
  [[nodiscard]] bool is_flat() const;
  [[nodiscard]] uint8_t output_extent(size_t output) const {
    return extents[static_cast<size_t>(outputs[output].value)];
  }
};

// Builds programs inside the host. Merges equal instructions and folds x + 0, x - 0, x * 1, x / 1 and x ^ 1.
struct TrimmedProgram;
class ProgramWriter {
 public:
  int32_t input(uint8_t extent, uint8_t kind = TN_FLOAT);
  int32_t constant(double number, uint8_t kind = TN_FLOAT);
  int32_t uniform(int32_t draw, uint8_t extent);
  // Appends an elementwise operation; the kind of its result follows from the operation.
  int32_t apply(uint16_t op, int32_t a, int32_t b = -1, int32_t c = -1);
  int32_t cast(int32_t a, uint8_t to);
  int32_t reduce(uint16_t op, int32_t a, uint8_t to);
  // Broadcasts a value to the extent `to`.
  int32_t expand(int32_t a, uint8_t to);
  void output(int32_t value, tn_dtype dtype = TN_COMPUTE) { program_.outputs.push_back({value, dtype}); }

  [[nodiscard]] uint8_t extent(int32_t value) const { return program_.extents[static_cast<size_t>(value)]; }
  [[nodiscard]] uint8_t kind(int32_t value) const { return program_.instructions[static_cast<size_t>(value)].kind; }
  // Copies every instruction of `program`, with the values `inputs` in place of its inputs. Returns the new number of
  // every instruction.
  std::vector<int32_t> inline_program(const Program& program, const std::vector<int32_t>& inputs);

  // Returns the program without dead instructions. Inputs keep their numbers, even if they are not read.
  [[nodiscard]] Program finish() const;
  // Returns the program without dead instructions and unread inputs.
  [[nodiscard]] TrimmedProgram finish_trimmed() const;

 private:
  int32_t append(const tn_instruction& instruction, uint8_t extent);
  [[nodiscard]] bool is_constant(int32_t value, double number) const;
  [[nodiscard]] int32_t folded(uint16_t op, int32_t a, int32_t b) const;

  void grow();

  Program program_;
  std::vector<int32_t> slots_;  // hash table of the instructions, by number; -1: free
};

// A program without unread inputs; kept[i] is the former number of input i.
struct TrimmedProgram {
  Program program;
  std::vector<int32_t> kept;
};
[[nodiscard]] TrimmedProgram trim_inputs(const Program& program);

// Returns the gradient program of `forward`. Its inputs are the inputs of `forward`, the outputs of `forward` (unread,
// present because an author's gradient may read them), then the gradients of these outputs. Its outputs are the
// gradients of the inputs in `wanted`, in that order, each with the extent of its input.
// Reverse mode over the instructions (Griewank & Walther, "Evaluating Derivatives", 2008, chapter 3): recomputes the
// forward values from the inputs, and sums the gradient of a broadcast operand over the broadcast rows or columns.
// given[j]: whether output j has a gradient; a missing gradient counts as zero.
[[nodiscard]] Program derive_gradient(const Program& forward, const std::vector<bool>& given,
                                      const std::vector<int32_t>& wanted);

// Returns an author's gradient program (tn_pointwise.gradient) with only the outputs in `wanted`, and with zeros for
// missing gradients. `author` has passed check_author_gradient.
[[nodiscard]] Program restrict_gradient(const Program& author, const Program& forward, const std::vector<bool>& given,
                                        const std::vector<int32_t>& wanted);

// Throws TN_INVALID if `author` lacks the inputs and outputs that a gradient of `forward` must have.
void check_author_gradient(const Program& author, const Program& forward);

}  // namespace tenon::core

// The text of single values in a generated kernel. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device.h>

#include <string>

#include "plan.h"
#include "source.h"

namespace tenon::cuda {

[[nodiscard]] inline std::string text(int64_t number) { return std::to_string(number); }
// The variable of a value, and that of a reduction's accumulator.
[[nodiscard]] inline std::string name(int32_t value) { return "v" + text(value); }
[[nodiscard]] inline std::string accumulator(int32_t value) { return "s" + text(value); }
// The type of a value, and the struct that joins two values of a reduction.
[[nodiscard]] const char* kind_name(uint8_t kind);
[[nodiscard]] const char* fold_name(uint16_t operation);
// The C++ type of an element in memory; null if it is not offered.
[[nodiscard]] const char* element_name(const tn_pointwise_site& site, tn_dtype dtype);

// Expressions of one kernel. They use the loops' variables: r, c, and i, the element's position.
class Expressions {
 public:
  // group: threads that share a row in Grid::kRows.
  Expressions(const tn_pointwise_site& site, const Indexed& indexed, const Plan& plan, const Kernel& kernel,
              int64_t group)
      : site_(site), indexed_(indexed), plan_(plan), kernel_(kernel), group_(group) {}

  // The expression of a value: a read from memory, a fold of partial results, or a computation from its operands'
  // variables.
  [[nodiscard]] std::string of(int32_t value) const;
  // The index of an element of an input of the program.
  [[nodiscard]] std::string input_place(const Node& load) const;
  // Whether the kernel completes this reduction.
  [[nodiscard]] bool keeps(int32_t value) const;

 private:
  [[nodiscard]] std::string folded(const Node& node) const;
  [[nodiscard]] std::string computed(const Node& node) const;
  [[nodiscard]] std::string cast(const Node& node, const std::string& a) const;
  [[nodiscard]] std::string arithmetic(const Node& node, const std::string& a, const std::string& b) const;

  const tn_pointwise_site& site_;
  const Indexed& indexed_;
  const Plan& plan_;
  const Kernel& kernel_;
  const int64_t group_;
};

// The index of an element of this extent: "0", "c", "r" or "i".
[[nodiscard]] const char* position(uint8_t extent);
// The index of an element of an operand, which may be a table that a.rows indexes.
[[nodiscard]] std::string place(uint8_t extent, bool indexed);

}  // namespace tenon::cuda

// What random pointwise programs have in common: instructions over values that were drawn before.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <random>
#include <vector>

#include "core/program.h"

namespace tenon_tests {

class DrawnProgram {
 protected:
  explicit DrawnProgram(std::mt19937_64& random) : random_(random) {}

  size_t pick(size_t n) { return static_cast<size_t>(random_() % n); }
  bool one_in(size_t n) { return pick(n) == 0; }

  // A value of the kind; a cast of any value if there is none, or once in so many times if that is not 0.
  int32_t any(uint8_t kind, size_t casts = 0) {
    std::vector<int32_t> of_kind;
    for (const int32_t value : values_)
      if (writer_.kind(value) == kind) of_kind.push_back(value);
    return of_kind.empty() || (casts > 0 && one_in(casts)) ? writer_.cast(values_[pick(values_.size())], kind)
                                                           : of_kind[pick(of_kind.size())];
  }
  int32_t clamped(int32_t value, double most) {
    const uint8_t kind = writer_.kind(value);
    return writer_.apply(TN_OP_MAX, writer_.apply(TN_OP_MIN, value, writer_.constant(most, kind)),
                         writer_.constant(-most, kind));
  }
  // The extents that a reduction of the value may have.
  [[nodiscard]] std::vector<uint8_t> smaller_extents(int32_t value) const {
    const uint8_t from = writer_.extent(value);
    std::vector<uint8_t> smaller;
    for (const uint8_t to : {uint8_t{TN_SCALAR}, uint8_t{TN_PER_COLUMN}, uint8_t{TN_PER_ROW}})
      if (to != from && tenon::core::cover(to, from) == from) smaller.push_back(to);
    return smaller;
  }

  std::mt19937_64& random_;
  tenon::core::ProgramWriter writer_;
  std::vector<int32_t> values_;
};

}  // namespace tenon_tests

// The numbers of arrays, as texts and as values. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <tenon/tenon.hpp>

namespace tenon::cli {

// Reads the elements of an array, which must outlive it, by their numbers in row-major order.
class Numbers {
 public:
  // nan: the text for values that are not finite.
  Numbers(const Array& array, const char* nan) : array_(array), nan_(nan) {}

  // Appends an element in the fewest digits that read back as the same value of its type. Throws Failure(kBadConfig)
  // for an element type of less than 8 bits.
  void append(std::string& to, int64_t index) const;
  // Returns an element as a double, rounded if it is a large integer. Throws like append.
  [[nodiscard]] double value(int64_t index) const;

 private:
  template <typename Visit>
  void with_element(int64_t index, const Visit& visit) const;

  const Array& array_;
  const char* nan_;
};

[[nodiscard]] int64_t samples_of(const Array& array);
// Returns how many numbers a sample, or a row of a sequence, has.
[[nodiscard]] int64_t per_row(const Array& array);

}  // namespace tenon::cli

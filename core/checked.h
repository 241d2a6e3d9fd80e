// Checked integer arithmetic. Every size, offset and index that comes from a file, a shape or a plugin goes through
// here, in release builds too. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/error.h"

namespace tenon::core {

// what: names the number in the message. A text, or a value that operator<< prints then and only then.
template <typename T, typename What>
[[nodiscard]] T checked_add(T a, T b, What what) {
  T sum;
  if (__builtin_add_overflow(a, b, &sum)) fail(TN_INVALID, what, ": ", a, " + ", b, " is too large");
  return sum;
}

template <typename T, typename What>
[[nodiscard]] T checked_multiply(T a, T b, What what) {
  T product;
  if (__builtin_mul_overflow(a, b, &product)) fail(TN_INVALID, what, ": ", a, " * ", b, " is too large");
  return product;
}

template <typename To, typename From>
[[nodiscard]] To checked_cast(From value, const char* what) {
  static_assert(std::is_integral_v<To> && std::is_integral_v<From>);
  const To result = static_cast<To>(value);
  if (static_cast<From>(result) != value || ((result < To{}) != (value < From{})))
    fail(TN_INVALID, what, ": ", value, " is out of range");
  return result;
}

}  // namespace tenon::core

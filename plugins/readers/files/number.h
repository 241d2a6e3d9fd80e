// Reads numbers from text. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fast_float/fast_float.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <system_error>

namespace tenon::files {

// Bytes behind the text of Source::view that may be loaded; their values do not matter.
constexpr size_t kPadding = 8;

// `text` without a plus sign before a number, which from_chars does not accept.
inline std::string_view without_plus(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

// Reads the number that begins at `at`, which may be infinite or NaN. Returns its end, or null if there is no number.
template <typename T>
const char* read_float(const char* at, const char* end, T* value) {
  const auto [stop, error] = fast_float::from_chars(at, end, *value);
  return error == std::errc() ? stop : nullptr;
}

namespace detail {

// The whole numbers up to kMost and the powers of ten in kPowers are exact in T.
template <typename T>
struct Exact;
template <>
struct Exact<float> {
  static constexpr uint64_t kMost = uint64_t{1} << 24;
  static constexpr float kPowers[] = {1e0F, 1e1F, 1e2F, 1e3F, 1e4F, 1e5F, 1e6F, 1e7F, 1e8F};
};
template <>
struct Exact<double> {
  static constexpr uint64_t kMost = uint64_t{1} << 53;
  static constexpr double kPowers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8};
};

// The number of the first `count` of eight digits. digits: byte i has digit i, 0 to 9, in little-endian order.
inline uint64_t join_digits(uint64_t digits, int count) {
  uint64_t x = count == 0 ? 0 : digits << (64 - 8 * count);  // as the last digits, after zeros
  x = x * 10 + (x >> 8);                                     // pairs
  constexpr uint64_t kPairs = 0x000000FF000000FF;
  return (((x & kPairs) * 0x000F424000000064) + (((x >> 16) & kPairs) * 0x0000271000000001)) >> 32;
}

}  // namespace detail

// The same for a text with kPadding bytes behind `end`, faster for short numbers: digits, then a point and at most 7
// more digits. If the digits and the power of ten are exact in T, one division rounds correctly (W. D. Clinger, "How to
// read floating point numbers accurately", 1990).
template <typename T>
const char* read_padded_float(const char* at, const char* end, T* value) {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
  constexpr uint64_t kTens[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};
  const char* p = at;
  const bool negative = p != end && *p == '-';
  p += negative ? 1 : 0;
  const char* const whole_begin = p;
  uint64_t whole = 0;
  for (unsigned digit = 0; p != end && (digit = static_cast<unsigned>(*p) - '0') < 10; ++p) whole = whole * 10 + digit;
  const auto whole_digits = p - whole_begin;
  if (whole_digits == 0 || whole_digits > 9) return read_float(at, end, value);
  int count = 0;  // digits after the point
  if (p != end && *p == '.') {
    uint64_t digits = 0;
    std::memcpy(&digits, ++p, sizeof digits);
    digits -= 0x3030303030303030;  // a borrow changes only bytes after the first that is not a digit
    const uint64_t others = ((digits + 0x7676767676767676) | digits) & 0x8080808080808080;
    if (others == 0) return read_float(at, end, value);
    count = static_cast<int>(std::min<ptrdiff_t>(__builtin_ctzll(others) / 8, end - p));
    whole = whole * kTens[count] + detail::join_digits(digits, count);
    p += count;
  }
  if (whole > detail::Exact<T>::kMost || (p != end && (*p | 0x20) == 'e')) return read_float(at, end, value);
  const T magnitude = static_cast<T>(whole) / detail::Exact<T>::kPowers[count];
  *value = negative ? -magnitude : magnitude;
  return p;
}

}  // namespace tenon::files

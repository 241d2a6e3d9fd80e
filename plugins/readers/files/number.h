// Reads numbers from text. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fast_float/fast_float.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace tenon::files {

// Bytes behind the text of Source::view that may be loaded; their values do not matter.
constexpr size_t kPadding = 64;

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

constexpr uint64_t kTens[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
constexpr double kPowers[] = {1e0, 1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7, 1e8,
                              1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16};

inline uint64_t load_eight(const char* at) {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
  uint64_t bytes = 0;
  std::memcpy(&bytes, at, sizeof bytes);
  return bytes;
}

// Sets *number to that of the first `count` of eight digits, 1 to 8. False if another character is among them.
inline bool read_eight(uint64_t bytes, size_t count, uint64_t* number) {
  uint64_t digits = (bytes ^ 0x3030303030303030) << (8 * (8 - count));  // 0 to 9 each, as the last digits, after zeros
  const bool others = (((digits + 0x7676767676767676) | digits) & 0x8080808080808080) != 0;
  digits = digits * 10 + (digits >> 8);  // pairs
  constexpr uint64_t kPairs = 0x000000FF000000FF;
  *number = ((digits & kPairs) * 0x000F424000000064 + ((digits >> 16) & kPairs) * 0x0000271000000001) >> 32;
  return !others;
}

// The same for 1 to 16 digits, of which the first eight are in `bytes` and the others at `rest`.
inline bool read_digits(uint64_t bytes, const char* rest, size_t count, uint64_t* number) {
  if (count <= 8) return read_eight(bytes, count, number);
  uint64_t last = 0;
  const bool good = read_eight(bytes, 8, number) && read_eight(load_eight(rest), count - 8, &last);
  *number = *number * kTens[count - 8] + last;
  return good;
}

// Whether rounding `value`, which was rounded from a number, to float could differ from rounding that number: only if
// it lies halfway between two floats.
inline bool is_halfway(double value) { return (std::bit_cast<uint64_t>(value) & 0x1FFFFFFF) == 0x10000000; }

}  // namespace detail

// Reads the whole number [at, end) of at most 16 digits, with kPadding bytes behind it. False if the text is another.
[[gnu::always_inline]] inline bool read_short_integer(const char* at, const char* end, int64_t* value) {
  const bool negative = *at == '-';
  at += negative ? 1 : 0;
  const auto count = static_cast<size_t>(end - at);
  uint64_t digits = 0;
  if (count - 1 >= 16 || !detail::read_digits(detail::load_eight(at), at + 8, count, &digits)) return false;
  const auto sign = -static_cast<int64_t>(negative);  // without a branch, since signs are hard to predict
  *value = (static_cast<int64_t>(digits) ^ sign) - sign;
  return true;
}

// The same for a number of at most 16 digits, at most 8 of them before a point, and without an exponent. If the digits
// as one whole number and the power of ten are exact in fp64, one division rounds correctly (W. D. Clinger, "How to
// read floating point numbers accurately", 1990).
template <typename T>
[[gnu::always_inline]] inline bool read_short_float(const char* at, const char* end, T* value) {
  const bool negative = *at == '-';
  at += negative ? 1 : 0;
  const auto length = static_cast<size_t>(end - at);
  const uint64_t text = detail::load_eight(at);
  uint64_t points = text ^ 0x2E2E2E2E2E2E2E2E;
  points = (points - 0x0101010101010101) & ~points & 0x8080808080808080;  // the lowest bit belongs to the first point
  size_t count = length, behind = 0;                                      // digits, and those of them behind the point
  uint64_t first = text, digits = 0;                                      // digits without the point
  if (const auto whole = static_cast<size_t>(std::countr_zero(points)) / 8; whole < std::min<size_t>(length, 8)) {
    const uint64_t before = (uint64_t{1} << (8 * whole)) - 1;
    first = (text & before) | (detail::load_eight(at + 1) & ~before);
    --count;
    behind = count - whole;
    at += 1;
  }
  if (count - 1 >= 16 || !detail::read_digits(first, at + 8, count, &digits) || digits > uint64_t{1} << 53)
    return false;
  const double magnitude = static_cast<double>(static_cast<int64_t>(digits)) / detail::kPowers[behind];
  if (!std::is_same_v<T, double> && detail::is_halfway(magnitude)) return false;
  const uint64_t bits = std::bit_cast<uint64_t>(magnitude) | uint64_t{negative} << 63;  // no branch: see above
  *value = static_cast<T>(std::bit_cast<double>(bits));
  return true;
}

}  // namespace tenon::files

// SPDX-License-Identifier: Apache-2.0
#include "host/cli/numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "host/cli/cli.h"

namespace tenon::cli {

namespace {

// A float16 or bfloat16.
struct Narrow {
  uint16_t bits;
  bool brain;  // bfloat16

  explicit operator double() const {
    const int exponent_bits = brain ? 8 : 5, fraction_bits = 15 - exponent_bits;
    const int bias = (1 << (exponent_bits - 1)) - 1, most = (1 << exponent_bits) - 1;
    const int fraction = bits & ((1 << fraction_bits) - 1), exponent = bits >> fraction_bits & most;
    double size =
        std::ldexp(fraction + (exponent > 0 ? 1 << fraction_bits : 0), std::max(exponent, 1) - bias - fraction_bits);
    if (exponent == most) size = fraction == 0 ? INFINITY : NAN;
    return (bits & 0x8000) != 0 ? -size : size;
  }
  // The neighbour that is nearer to zero (-1) or farther (1); not of the smallest or largest number.
  [[nodiscard]] double beside(int step) const {
    return static_cast<double>(Narrow{static_cast<uint16_t>(bits + step), brain});
  }
};

// The number with the fewest digits of those that are nearer to this one than to its neighbours.
double fewest_digits(const Narrow& number) {
  const double exact = static_cast<double>(number);
  if (!std::isfinite(exact) || exact == 0) return exact;
  const double inner = number.beside(-1), outer = number.beside(1);
  const double least = (exact + inner) / 2, most = std::isfinite(outer) ? (exact + outer) / 2 : 2 * exact - least;
  double result = exact;
  for (int digits = 1; digits <= 9; ++digits) {
    char text[40];
    const char* const end = std::to_chars(text, text + sizeof text, exact, std::chars_format::general, digits).ptr;
    std::from_chars(text, end, result);
    if (std::min(least, most) < result && result < std::max(least, most)) break;
  }
  return result;
}

}  // namespace

// Calls `visit` with the element, integers of one byte as int.
template <typename Visit>
void Numbers::with_element(int64_t index, const Visit& visit) const {
  const auto with = [&](auto element) {
    std::memcpy(&element, static_cast<const char*>(array_.data) + static_cast<size_t>(index) * sizeof element,
                sizeof element);
    if constexpr (sizeof element == 1)
      visit(static_cast<int>(element));
    else
      visit(element);
  };
  const auto narrow = [&](bool brain) {
    Narrow element{0, brain};
    std::memcpy(&element.bits, static_cast<const char*>(array_.data) + 2 * index, 2);
    visit(element);
  };
  switch (array_.dtype) {
    case TN_F32:  // NOLINT(bugprone-branch-clone): each with another type
      return with(float());
    case TN_F64:
      return with(double());
    case TN_I8:
      return with(int8_t());
    case TN_I16:
      return with(int16_t());
    case TN_I32:
      return with(int32_t());
    case TN_I64:
      return with(int64_t());
    case TN_U8:
    case TN_BOOL:
      return with(uint8_t());
    case TN_U16:
      return with(uint16_t());
    case TN_U32:
      return with(uint32_t());
    case TN_F16:
      return narrow(false);
    case TN_BF16:
      return narrow(true);
    default:
      throw Failure(kBadConfig, "values of this element type cannot be printed");
  }
}

void Numbers::append(std::string& to, int64_t index) const {
  const auto put = [&](auto number) {
    if constexpr (std::is_floating_point_v<decltype(number)>)
      if (!std::isfinite(number)) {
        to += nan_;
        return;
      }
    char text[40];
    to.append(text, std::to_chars(text, text + sizeof text, number).ptr);
  };
  with_element(index, [&](auto number) {
    if constexpr (std::is_same_v<decltype(number), Narrow>)
      put(fewest_digits(number));
    else
      put(number);
  });
}

double Numbers::value(int64_t index) const {
  double result = 0;
  with_element(index, [&](auto number) { result = static_cast<double>(number); });
  return result;
}

int64_t samples_of(const Array& array) { return array.storage == TN_RAGGED ? array.samples : array.shape.at(0); }

int64_t per_row(const Array& array) { return array.shape[0] == 0 ? 0 : array.count() / array.shape[0]; }

}  // namespace tenon::cli

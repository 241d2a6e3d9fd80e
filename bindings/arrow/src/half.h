// Floats of 16 bits. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

namespace tenon_arrow {

// Returns the value of an IEEE 754 half.
[[nodiscard]] inline float from_half(uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  float size = std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  if (exponent == 0) size = std::ldexp(static_cast<float>(fraction), -24);
  if (exponent == 31) size = fraction == 0 ? INFINITY : NAN;
  return (bits & 0x8000) != 0 ? -size : size;
}

}  // namespace tenon_arrow

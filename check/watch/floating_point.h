// The floating-point mode of a thread. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cfenv>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace tenon::check {

// How floats are rounded, and on x86 the control bits of SSE, without the flags of what has happened.
struct FloatingPoint {
  int rounding = 0;
  unsigned control = 0;
  friend bool operator==(const FloatingPoint& a, const FloatingPoint& b) = default;
};

inline FloatingPoint floating_point() {
  FloatingPoint result;
  result.rounding = std::fegetround();
#if defined(__x86_64__)
  result.control = _mm_getcsr() & ~0x3FU;
#endif
  return result;
}

inline void set_floating_point(const FloatingPoint& mode) {
  std::fesetround(mode.rounding);
#if defined(__x86_64__)
  _mm_setcsr(mode.control);
#endif
}

}  // namespace tenon::check

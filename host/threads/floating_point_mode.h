// SPDX-License-Identifier: Apache-2.0
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>

#include <cstdint>
#else
#include <cfenv>
#endif

namespace tenon {

// Round to nearest, denormals kept, nothing trapped, for as long as it lives; then what was before. fesetenv would do
// it too, in ten times the time, and there is one of these around every region.
class FloatingPointMode {
 public:
#if defined(__x86_64__)
  FloatingPointMode() : sse_(_mm_getcsr()) {
    asm volatile("fnstcw %0" : "=m"(x87_));  // long double, and what fegetround looks at
    set(0x1F80, 0x037F);
  }
  ~FloatingPointMode() { set(sse_, x87_); }
#else
  FloatingPointMode() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~FloatingPointMode() { std::fesetenv(&before_); }
#endif
  FloatingPointMode(const FloatingPointMode&) = delete;
  FloatingPointMode& operator=(const FloatingPointMode&) = delete;

 private:
#if defined(__x86_64__)
  static void set(unsigned sse, uint16_t x87) {
    _mm_setcsr(sse);
    asm volatile("fldcw %0" : : "m"(x87));
  }
  unsigned sse_;
  uint16_t x87_ = 0;
#else
  std::fenv_t before_;
#endif
};

}  // namespace tenon

// SPDX-License-Identifier: Apache-2.0
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>

#include <cstdint>
#else
#include <cfenv>
#endif

namespace tenon::host {

// Sets the default floating-point mode while it lives: round to nearest, denormals kept, no traps. The destructor
// restores the previous mode. Every region of the thread pool has one of these, and fesetenv takes ten times as long.
class FloatingPointMode {
 public:
#if defined(__x86_64__)
  FloatingPointMode() : sse_(_mm_getcsr()) {
    asm volatile("fnstcw %0" : "=m"(x87_));  // the mode of long double, which fegetround reads
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

}  // namespace tenon::host

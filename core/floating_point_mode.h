// The floating-point mode of computation. SPDX-License-Identifier: Apache-2.0
#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>

#include <cstdint>
#else
#include <cfenv>

#include "base/not_copied.h"
#endif

namespace tenon::core {

// Sets the floating-point mode of computation while it lives: round to nearest, no traps, gradual underflow. Processors
// flush denormals in different ways, so none does. The destructor restores the previous mode. Every region of the
// thread pool has one of these, and fesetenv takes ten times as long.
class FloatingPointMode : base::NotCopied {
 public:
#if defined(__x86_64__)
  FloatingPointMode() : sse_(_mm_getcsr()) {
    asm volatile("fnstcw %0" : "=m"(x87_));  // the mode of long double, which fegetround reads
    set(kMasked, 0x037F);
  }
  ~FloatingPointMode() { set(sse_, x87_); }
#else
  FloatingPointMode() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~FloatingPointMode() { std::fesetenv(&before_); }
#endif

 private:
#if defined(__x86_64__)
  static constexpr unsigned kMasked = 0x1F80;  // all traps off, round to nearest
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

}  // namespace tenon::core

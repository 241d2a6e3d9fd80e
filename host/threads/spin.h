// Short waits for other threads without sleeping. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace tenon::host {

constexpr std::chrono::microseconds kSpin{40};  // longer than the gap between two regions of a step

inline void pause_briefly() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins until `ready()`, for about kSpin at most. Returns whether ready() became true.
template <typename Ready>
bool spin_until(Ready ready) {
  const auto until = std::chrono::steady_clock::now() + kSpin;
  do {
    constexpr int kPauses = 32;  // between two reads of the clock
    for (int i = 0; i < kPauses; ++i) {
      if (ready()) return true;
      pause_briefly();
    }
  } while (std::chrono::steady_clock::now() < until);
  return false;
}

}  // namespace tenon::host

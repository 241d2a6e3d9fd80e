// Short waits for other threads without sleeping. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <thread>

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

// Leaves the core to other threads once. Returns false if one of them has computed meanwhile: who goes on like this
// gets the core back after a whole slice of time each time, and does better to sleep.
inline bool yield_briefly() {
  constexpr std::chrono::microseconds kBriefly{50};
  const auto before = std::chrono::steady_clock::now();
  std::this_thread::yield();
  return std::chrono::steady_clock::now() - before < kBriefly;
}

// Looks for `ready()` for `limit` at most, for waits of which the end may need this core: leaves it again and again,
// while nobody computes there.
template <typename Ready>
bool yield_until(const Ready& ready, std::chrono::microseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  bool goes_on = true;
  while (!ready()) {
    if (!goes_on || std::chrono::steady_clock::now() >= until) return false;
    goes_on = yield_briefly();
  }
  return true;
}

}  // namespace tenon::host

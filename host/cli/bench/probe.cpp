// SPDX-License-Identifier: Apache-2.0
#include "host/cli/bench/probe.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

namespace tenon::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTries = 3;
constexpr int kLanes = 128;  // independent chains: enough to hide the latency at any width of vectors
constexpr int kRepeats = 500'000;

// Calls work(thread) on every thread at once, several times. Returns the seconds of the fastest try.
template <typename Work>
double best_seconds(int threads, const Work& work) {
  double best = 0;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const Clock::time_point began = Clock::now();
    std::vector<std::jthread> others;
    for (int thread = 1; thread < threads; ++thread) others.emplace_back(work, thread);
    work(0);
    others.clear();  // joins them
    const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
    best = attempt == 0 ? seconds : std::min(best, seconds);
  }
  return best;
}

[[gnu::always_inline]] inline void multiply_add(float* x) {
  for (int r = 0; r < kRepeats; ++r)
    for (int i = 0; i < kLanes; ++i) x[i] = x[i] * 0.999F + 0.001F;
}

#ifdef __x86_64__
[[gnu::target("avx512f,prefer-vector-width=512")]] void multiply_add_avx512(float* x) { multiply_add(x); }
[[gnu::target("avx2,fma")]] void multiply_add_avx2(float* x) { multiply_add(x); }
#endif
void multiply_add_plain(float* x) { multiply_add(x); }

using Chains = void (*)(float*);

Chains widest() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f")) return multiply_add_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return multiply_add_avx2;
#endif
  return multiply_add_plain;
}

}  // namespace

double peak_operations(int threads) {
  const Chains chains = widest();
  const double seconds = best_seconds(threads, [&](int thread) {
    alignas(64) float x[kLanes];
    for (int i = 0; i < kLanes; ++i) x[i] = 1.0F + static_cast<float>(i + thread) * 1e-3F;
    chains(x);
  });
  return 2.0 * kLanes * kRepeats * threads / seconds;
}

double peak_bandwidth(int threads, int64_t bytes) {
  constexpr int64_t kLeastMoved = 512 << 20;  // so that the start of threads does not count
  const int64_t count = std::max<int64_t>(bytes / 16, 256);
  const int64_t repeats = std::max<int64_t>(1, kLeastMoved / (28 * count));
  std::vector<std::vector<float>> arrays(4, std::vector<float>(static_cast<size_t>(count), 1.0F));
  const double seconds = best_seconds(threads, [&](int thread) {
    float* const p = arrays[0].data();
    const float* const g = arrays[1].data();
    float* const m = arrays[2].data();
    float* const v = arrays[3].data();
    const int64_t begin = count * thread / threads, end = count * (thread + 1) / threads;
    for (int64_t r = 0; r < repeats; ++r)
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) {
        const float a = m[i] * 0.9F + g[i], b = v[i] * 0.9F + g[i];
        m[i] = a;
        v[i] = b;
        p[i] = p[i] * 0.9F + a + b;
      }
  });
  return 28.0 * static_cast<double>(count * repeats) / seconds;
}

}  // namespace tenon::cli

// Probes of the machine's own limits, measured in the run whose figures they stand beside. SPDX-License-Identifier:
// Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

namespace bench {

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Peak fused multiply-adds of one core in fp32, two operations each; the best of five tries.
inline double flops_per_core() {
  constexpr int kLanes = 128;  // enough independent chains to hide the latency at any vector width
  constexpr int kRepeats = 1'000'000;
  float x[kLanes];
  for (int i = 0; i < kLanes; ++i) x[i] = 1.0F + static_cast<float>(i) * 1e-3F;
  double best = 0;
  for (int attempt = 0; attempt < 5; ++attempt) {
    const double began = now();
    for (int r = 0; r < kRepeats; ++r)
      for (int i = 0; i < kLanes; ++i) x[i] = x[i] * 0.999F + 0.001F;
    best = std::max(best, 2.0 * kLanes * kRepeats / (now() - began));
  }
  volatile float keep = 0;
  for (const float value : x) keep = keep + value;
  return best;
}

// Seconds that `threads` need to read `reads` and write `writes` floats for each of `count` elements: the probe of a
// multi-tensor update, which does nothing else; the best of five tries. Every thread has its own piece.
inline double stream_seconds(int threads, int64_t count, std::vector<std::vector<float>>& arrays) {
  double best = 1e30;
  for (int attempt = 0; attempt < 5; ++attempt) {
    const double began = now();
    std::vector<std::thread> workers;
    for (int t = 0; t < threads; ++t)
      workers.emplace_back([&, t] {
        const int64_t first = count * t / threads, last = count * (t + 1) / threads;
        float* p = arrays[0].data();
        const float* g = arrays[1].data();
        float* m = arrays[2].data();
        float* v = arrays[3].data();
        for (int64_t i = first; i < last; ++i) {
          const float a = m[i] + g[i], b = v[i] + g[i];
          m[i] = a;
          v[i] = b;
          p[i] += a + b;
        }
      });
    for (std::thread& worker : workers) worker.join();
    best = std::min(best, now() - began);
  }
  return best;
}

}  // namespace bench

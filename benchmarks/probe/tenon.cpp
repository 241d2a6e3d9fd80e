// The machine's own limits, measured in every round beside the programs: fused multiply-adds of fp32, and the bandwidth
// of a loop that reads four arrays and writes three, as an update by Adam does. SPDX-License-Identifier: Apache-2.0
//
//   bench_probe THREADS
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

constexpr int kTries = 3;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Calls work(thread) on every thread at once, several times; the seconds of the fastest try.
template <typename Work>
double best_seconds(int threads, const Work& work) {
  double best = 1e30;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const double began = now();
    std::vector<std::thread> others;
    for (int thread = 1; thread < threads; ++thread) others.emplace_back(work, thread);
    work(0);
    for (std::thread& other : others) other.join();
    best = std::min(best, now() - began);
  }
  return best;
}

double flops(int threads) {
  constexpr int kLanes = 128;  // enough independent chains to hide the latency at any width of vectors
  constexpr int kRepeats = 500'000;
  std::vector<float> kept(static_cast<size_t>(threads));
  const double seconds = best_seconds(threads, [&](int thread) {
    float x[kLanes];
    for (int i = 0; i < kLanes; ++i) x[i] = 1.0F + static_cast<float>(i + thread) * 1e-3F;
    for (int r = 0; r < kRepeats; ++r)
      for (int i = 0; i < kLanes; ++i) x[i] = x[i] * 0.999F + 0.001F;
    float sum = 0;
    for (const float value : x) sum += value;
    kept[static_cast<size_t>(thread)] = sum;
  });
  return 2.0 * kLanes * kRepeats * threads / seconds * (kept[0] != 0 ? 1 : 0);
}

double bandwidth(int threads) {
  constexpr int64_t kCount = 16'000'000;  // of each array; far above any cache
  std::vector<std::vector<float>> arrays(4, std::vector<float>(kCount, 1.0F));
  const double seconds = best_seconds(threads, [&](int thread) {
    float* p = arrays[0].data();
    const float* g = arrays[1].data();
    float* m = arrays[2].data();
    float* v = arrays[3].data();
    for (int64_t i = kCount * thread / threads; i < kCount * (thread + 1) / threads; ++i) {
      const float a = m[i] * 0.9F + g[i], b = v[i] * 0.9F + g[i];
      m[i] = a;
      v[i] = b;
      p[i] += a + b;
    }
  });
  return 28.0 * static_cast<double>(kCount) / seconds;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: bench_probe THREADS\n"), 64;
  const int threads = std::max(1, std::atoi(argv[1]));
  std::printf("{\"flops\": %.6g, \"bandwidth\": %.6g}\n", flops(threads), bandwidth(threads));
  return 0;
}

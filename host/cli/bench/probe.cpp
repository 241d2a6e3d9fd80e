// SPDX-License-Identifier: Apache-2.0
#include "host/cli/bench/probe.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace tenon::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTries = 5;
constexpr double kSeconds = 0.02;  // of a try: long beside what a barrier takes to let the last thread go
constexpr int kChains = 12;        // that do not wait for one another: they hide the latency, and fit into 16 registers
constexpr int kRepeats = 20'000;   // of the chains, in a unit of work

// Seconds from the moment at which the first thread begins to that at which the last one ends work(thread, units). The
// threads are there before that: to start one takes longer than much of what is measured.
template <typename Work>
double seconds_of(int threads, int64_t units, const Work& work) {
  std::barrier meeting(threads);
  std::vector<Clock::time_point> began(static_cast<size_t>(threads)), ended(began);
  const auto run = [&](int thread) {
    const auto place = static_cast<size_t>(thread);
    meeting.arrive_and_wait();
    began[place] = Clock::now();
    work(thread, units);
    ended[place] = Clock::now();
  };
  {
    std::vector<std::jthread> others;
    for (int thread = 1; thread < threads; ++thread) others.emplace_back(run, thread);
    run(0);
  }
  return std::chrono::duration<double>(*std::max_element(ended.begin(), ended.end()) -
                                       *std::min_element(began.begin(), began.end()))
      .count();
}

// The units of work(thread, units) per second and thread, in the fastest of several tries.
template <typename Work>
double units_per_second(int threads, const Work& work) {
  int64_t units = 1;
  double seconds = seconds_of(threads, units, work);
  while (seconds < kSeconds / 4) seconds = seconds_of(threads, units *= 2, work);
  units = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(units) * kSeconds / seconds));
  double best = seconds_of(threads, units, work);
  for (int attempt = 1; attempt < kTries; ++attempt) best = std::min(best, seconds_of(threads, units, work));
  return static_cast<double>(units) / best;
}

// A chain of multiply-adds for each lane, for as many units; the operations of a unit are `per_unit`.
struct Chains {
  void (*run)(int64_t units);
  double per_unit;
};

// Chains of vectors: as many as hide the latency of an instruction and fit into the registers.
template <int kBytes>
[[gnu::always_inline]] inline void multiply_add(int64_t units) {
  using Vector [[gnu::vector_size(kBytes)]] = float;
  Vector x[kChains];
#pragma GCC unroll 16
  for (int i = 0; i < kChains; ++i) x[i] = Vector{} + static_cast<float>(i);
  for (int64_t r = 0; r < units * kRepeats; ++r)
#pragma GCC unroll 16
    for (Vector& chain : x) chain = chain * 0.999F + 0.001F;
  Vector sum = {};
#pragma GCC unroll 16
  for (const Vector& chain : x) sum += chain;
  asm volatile("" ::"m"(sum));  // the results are used
}
template <int kBytes>
constexpr double kChainOperations = 2.0 * kChains* kBytes / sizeof(float) * kRepeats;

#ifdef __x86_64__
[[gnu::target("avx512f,prefer-vector-width=512")]] void multiply_add_avx512(int64_t units) { multiply_add<64>(units); }
[[gnu::target("avx2,fma")]] void multiply_add_avx2(int64_t units) { multiply_add<32>(units); }

// Chains of 16 floats, to each of which an instruction adds 32 products.
[[gnu::target("avx512f,avx512bf16")]] void multiply_pairs(int64_t units) {
  __m512 x[kChains] = {};
  const auto ones = (__m512bh)_mm512_set1_epi32(0x3f803f80);
  for (int64_t r = 0; r < units * kRepeats; ++r)
#pragma GCC unroll 16
    for (__m512& chain : x) chain = _mm512_dpbf16_ps(chain, ones, ones);
  __m512 sum = {};
#pragma GCC unroll 16
  for (const __m512& chain : x) sum += chain;
  asm volatile("" ::"m"(sum));
}

// Four tiles of 16 x 16 floats, to each of which an instruction adds a product of 16 x 32 and 32 x 16.
[[gnu::target("amx-tile,amx-bf16")]] void multiply_tiles(int64_t units) {
  struct alignas(64) {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t bytes[16] = {64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16};
  } shape;
  asm volatile("" ::"r"(&shape) : "memory");  // GCC 12 takes it that the next line reads 8 bytes alone
  _tile_loadconfig(&shape);
  _tile_zero(4);
  _tile_zero(5);
  for (int64_t r = 0; r < units * kRepeats / 4; ++r) {
    _tile_dpbf16ps(0, 4, 5);
    _tile_dpbf16ps(1, 4, 5);
    _tile_dpbf16ps(2, 4, 5);
    _tile_dpbf16ps(3, 4, 5);
  }
  _tile_release();
}

// Whether the kernel lets this process use tiles.
bool has_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM of asm/prctl.h, XFEATURE_XTILEDATA
  constexpr uint32_t kTileProducts = 1U << 22U;                // AMX-BF16, in the register edx of leaf 7
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx & kTileProducts) != 0 &&
         syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}
#endif

void multiply_add_plain(int64_t units) { multiply_add<16>(units); }

Chains widest() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f")) return {multiply_add_avx512, kChainOperations<64>};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {multiply_add_avx2, kChainOperations<32>};
#endif
  return {multiply_add_plain, kChainOperations<16>};
}

Chains widest_of_bf16() {
#ifdef __x86_64__
  if (has_tiles()) return {multiply_tiles, 2.0 * 16 * 16 * 32 * kRepeats};
  if (__builtin_cpu_supports("avx512bf16")) return {multiply_pairs, 2 * kChainOperations<64>};
#endif
  return widest();
}

double rate_of(const Chains& chains, int threads) {
  const double units = units_per_second(threads, [&](int, int64_t count) { chains.run(count); });
  return chains.per_unit * threads * units;
}

struct Unmap {
  size_t bytes;
  void operator()(float* first) const { munmap(first, bytes); }
};
using Array = std::unique_ptr<float[], Unmap>;

// In huge pages where the system has them, as large slabs of parameters are.
Array array_of(int64_t count) {
  const auto bytes = static_cast<size_t>(count) * sizeof(float);
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  (void)madvise(memory, bytes, MADV_HUGEPAGE);
  auto* const first = static_cast<float*>(memory);
  std::fill_n(first, count, 1.0F);
  return Array(first, Unmap{bytes});
}

// 0 if other programs kept the two threads from running together.
double round_trip_between(int first, int second) {
  constexpr int kTripsOfTry = 100, kAllTries = 100, kLooks = 4096;
  struct alignas(128) {
    std::atomic<int> ball = 0;  // even: it is the first one's turn
  } line;
  double best = std::numeric_limits<double>::infinity();
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(200);
  const auto take = [&](int own) {
    for (int looks = 1; line.ball.load(std::memory_order_acquire) % 2 != own; ++looks)
      if (looks % kLooks == 0) {
        if (Clock::now() > end) return false;
        std::this_thread::yield();
      }
    return true;
  };
  const auto play = [&](int own, int processor) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(processor, &cores);
    (void)sched_setaffinity(0, sizeof cores, &cores);
    for (int attempt = 0; attempt < kAllTries; ++attempt) {
      const Clock::time_point began = Clock::now();
      for (int trip = 0; trip < kTripsOfTry; ++trip) {
        if (!take(own)) return;
        line.ball.fetch_add(1, std::memory_order_acq_rel);
      }
      if (own == 0) best = std::min(best, std::chrono::duration<double>(Clock::now() - began).count() / kTripsOfTry);
    }
  };
  { const std::jthread one(play, 0, first), other(play, 1, second); }
  return std::isinf(best) ? 0 : best;
}

std::vector<int> usable_processors() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  std::vector<int> result;
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) return result;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &cores)) result.push_back(i);
  return result;
}

}  // namespace

double round_trip_seconds(int threads) {
  const std::vector<int> processors = usable_processors();
  double most = 0;
  for (size_t i = 1; i < std::min(processors.size(), static_cast<size_t>(std::max(threads, 1))); ++i)
    most = std::max(most, round_trip_between(processors[0], processors[i]));
  return most;
}

double peak_operations(int threads) { return rate_of(widest(), threads); }

double peak_bf16_operations(int threads) { return rate_of(widest_of_bf16(), threads); }

double peak_bandwidth(int threads, int64_t bytes) {
  const int64_t count = std::max<int64_t>(bytes / 16, 256);
  const Array arrays[] = {array_of(count), array_of(count), array_of(count), array_of(count)};
  const double units = units_per_second(threads, [&](int thread, int64_t repeats) {
    float* const p = arrays[0].get();
    const float* const g = arrays[1].get();
    float* const m = arrays[2].get();
    float* const v = arrays[3].get();
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
  return 28.0 * static_cast<double>(count) * units;
}

}  // namespace tenon::cli

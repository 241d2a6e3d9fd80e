// Strips of columns are summed in registers over all sources of a row, so that each source is read once and a row of
// the result is written once. SPDX-License-Identifier: Apache-2.0
#include "row_sums.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "row_sums.cpp"
// clang-format off: Highway needs this order
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "pointwise/targets.h"
// clang-format on

#include <algorithm>
#include <array>
#include <utility>

#include "pointwise/loops-inl.h"
#include "prefetch.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {

constexpr int kMostVectors = 8;  // of a strip

// Rows [first, last), columns [column, column + columns), which fill kVectors vectors but for a part of the last.
template <class T, bool kProducts, int kVectors>
void sum_strip(const RowSums& s, int64_t first, int64_t last, int64_t column, int64_t columns) {
  const Tag<T> d;
  constexpr int64_t kSize = sizeof(T), kLanes = static_cast<int64_t>(hn::MaxLanes(Tag<T>()));
  constexpr int64_t kLast = (kVectors - 1) * kLanes;
  const int64_t left = columns - kLast;
  const bool whole = left == kLanes;
  const auto last_of = [&](const T* row) { return whole ? hn::LoadU(d, row + kLast) : load_part(row + kLast, left); };
  // Returns a source. The factors of products may lie anywhere: prefetches that of a later source, of another row, too.
  const auto source = [&](uint32_t n) {
    if (kProducts && n + kAhead < s.count) prefetch(s.sources[n + kAhead] + column * kSize, columns * kSize);
    return reinterpret_cast<const T*>(s.sources[n]) + column;
  };
  Vector<T> sums[kVectors];
  const auto load = [&](const T* row) {
#pragma GCC unroll 8
    for (int v = 0; v + 1 < kVectors; ++v) sums[v] = hn::LoadU(d, row + v * kLanes);
    sums[kVectors - 1] = last_of(row);
  };
  for (int64_t u = first; u < last; ++u) {
    const int64_t target = s.targets[u];
    T* const to = reinterpret_cast<T*>(s.to) + (target < 0 ? ~target : target) * s.width + column;
    uint32_t n = s.starts[u];
    const uint32_t end = s.starts[u + 1];
    if (target < 0) {
      load(to);
    } else if constexpr (kProducts) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sums[v] = hn::Zero(d);
    } else {
      load(source(n++));
    }
    for (; n < end; ++n) {
      const T* const row = source(n);
      const auto add = [&](Vector<T>& sum, Vector<T> value) {
        if constexpr (kProducts) {
          value = hn::Mul(hn::Set(d, static_cast<T>(s.factors[n].weight)), value);
          value = hn::Mul(hn::Set(d, static_cast<T>(s.factors[n].scale)), value);
        }
        sum = hn::Add(sum, value);
      };
#pragma GCC unroll 8
      for (int v = 0; v + 1 < kVectors; ++v) add(sums[v], hn::LoadU(d, row + v * kLanes));
      add(sums[kVectors - 1], last_of(row));
    }
#pragma GCC unroll 8
    for (int v = 0; v + 1 < kVectors; ++v) hn::StoreU(sums[v], d, to + v * kLanes);
    if (whole)
      hn::StoreU(sums[kVectors - 1], d, to + kLast);
    else
      store_part(sums[kVectors - 1], to + kLast, left);
  }
}

template <class T, bool kProducts>
void sum_rows(const RowSums& s, int64_t first, int64_t last) {
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Tag<T>())), kStrip = kMostVectors * kLanes;
  static constexpr auto kKernels = []<int... kIndex>(std::integer_sequence<int, kIndex...>) {
    return std::array{&sum_strip<T, kProducts, kIndex + 1>...};
  }
  (std::make_integer_sequence<int, kMostVectors>());
  for (int64_t column = 0; column < s.width; column += kStrip) {
    const int64_t columns = std::min(kStrip, s.width - column);
    kKernels[static_cast<size_t>((columns + kLanes - 1) / kLanes - 1)](s, first, last, column, columns);
  }
}

}  // namespace

RowSumKernel find_row_sum(bool wide, bool products) {
  if (products) return wide ? &sum_rows<double, true> : &sum_rows<float, true>;
  return wide ? &sum_rows<double, false> : &sum_rows<float, false>;
}

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::cpu {

RowSumKernel row_sum_kernel(Isa isa, bool wide, bool products) { TENON_CHOOSE(isa, find_row_sum(wide, products)); }

}  // namespace tenon::cpu
#endif

// Sums of the weights' gradients over planes, with a vector of partial sums for each weight.
// SPDX-License-Identifier: Apache-2.0
#include "conv/plane_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "conv/plane_kernels.cpp"
// clang-format off: Highway needs this order
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "pointwise/targets.h"
// clang-format on

#include <algorithm>
#include <array>
#include <utility>

#include "pointwise/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {

template <class T>
constexpr int64_t kWidth = static_cast<int64_t>(hn::MaxLanes(Tag<T>()));
template <class T>
constexpr int64_t kLanes = kPlaneBytes / sizeof(T);  // partial sums of a weight
constexpr int kVectors = std::max(1, static_cast<int>(kPlaneBytes / sizeof(float) / kWidth<float>));  // of a weight

#if HWY_TARGET == HWY_AVX3
constexpr int kTermsAtOnce = 4, kFiltersAtOnce = 6;  // 24 sums of 32 registers
#elif HWY_TARGET == HWY_AVX2
constexpr int kTermsAtOnce = 3, kFiltersAtOnce = 2;  // of two vectors each: 12 of 16
#else
constexpr int kTermsAtOnce = 2, kFiltersAtOnce = 1;
#endif

template <class T, int kFilters, int kTerms>
void add_planes(const PlanesBand& work, int64_t filter, int64_t term) {
  const Tag<T> d;
  const Band& band = work.band;
  T* const at = static_cast<T*>(work.sums) + (filter * work.row + term) * kLanes<T>;
  const T* source[kTerms];
#pragma GCC unroll 8
  for (int t = 0; t < kTerms; ++t) source[t] = static_cast<const T*>(band.source) + band.segments[term + t];
  Vector<T> sums[kFilters][kTerms][kVectors];
#pragma GCC unroll 8
  for (int f = 0; f < kFilters; ++f)
#pragma GCC unroll 8
    for (int t = 0; t < kTerms; ++t)
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v)
        sums[f][t][v] = hn::LoadU(d, at + (f * work.row + t) * kLanes<T> + v * kWidth<T>);
  for (int64_t row = 0; row < band.rows; ++row) {
    const T* const by = static_cast<const T*>(band.target) + filter * work.plane + row * band.target_row;
    for (int64_t place = 0; place < band.columns; place += kLanes<T>) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        Vector<T> target[kFilters];
#pragma GCC unroll 8
        for (int f = 0; f < kFilters; ++f) target[f] = hn::LoadU(d, by + f * work.plane + place + v * kWidth<T>);
#pragma GCC unroll 8
        for (int t = 0; t < kTerms; ++t) {
          const Vector<T> tap = hn::LoadU(d, source[t] + row * band.source_row + place + v * kWidth<T>);
#pragma GCC unroll 8
          for (int f = 0; f < kFilters; ++f) sums[f][t][v] = hn::MulAdd(target[f], tap, sums[f][t][v]);
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int f = 0; f < kFilters; ++f)
#pragma GCC unroll 8
    for (int t = 0; t < kTerms; ++t)
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v)
        hn::StoreU(sums[f][t][v], d, at + (f * work.row + t) * kLanes<T> + v * kWidth<T>);
}

template <class T>
void planes(const PlanesBand& work) {
  using Kernel = void (*)(const PlanesBand&, int64_t, int64_t);
  static constexpr auto kKernels = []<int... kIndex>(std::integer_sequence<int, kIndex...>) {
    return std::array<Kernel, sizeof...(kIndex)>{
        &add_planes<T, kIndex / kTermsAtOnce + 1, kIndex % kTermsAtOnce + 1>...};
  }
  (std::make_integer_sequence<int, kFiltersAtOnce * kTermsAtOnce>());
  const int64_t all = work.band.segments_count;
  int64_t filter = 0;
  for (int64_t left = (work.width + kFiltersAtOnce - 1) / kFiltersAtOnce; left > 0; --left) {
    const int64_t filters = (work.width - filter + left - 1) / left;  // groups of about equal size
    int64_t term = 0;
    for (int64_t groups = (all + kTermsAtOnce - 1) / kTermsAtOnce; groups > 0; --groups) {
      const int64_t terms = (all - term + groups - 1) / groups;
      kKernels[static_cast<size_t>((filters - 1) * kTermsAtOnce + terms - 1)](work, filter, term);
      term += terms;
    }
    filter += filters;
  }
}

template <class T>
void fold_all(const void* vectors, int64_t count, void* sums) {
  const Tag<T> d;
  const auto* from = static_cast<const T*>(vectors);
  for (int64_t i = 0; i < count; ++i, from += kLanes<T>) {
    Vector<T> parts[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) parts[v] = hn::LoadU(d, from + v * kWidth<T>);
    static_cast<T*>(sums)[i] = fold<Plus>(d, parts);
  }
}

template <class T>
constexpr PlaneKernels kPlaneKernels = {kLanes<T>, &planes<T>, &fold_all<T>};

}  // namespace

const PlaneKernels& find_planes(bool wide) { return wide ? kPlaneKernels<double> : kPlaneKernels<float>; }

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::cpu {

const PlaneKernels& plane_kernels(Isa isa, bool wide) { TENON_CHOOSE(isa, find_planes(wide)); }

}  // namespace tenon::cpu
#endif

// Lines of patches in vector registers. An element of a line is a chain of fused multiply-adds over the depth, added to
// the target. SPDX-License-Identifier: Apache-2.0
#include "conv/patch_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "conv/patch_kernels.cpp"
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

#if HWY_TARGET == HWY_AVX3
constexpr int kVectors = 2, kRows = 8;  // 16 sums of 32 registers
#else
constexpr int kVectors = 2, kRows = 4;  // 8 of 16
#endif

template <class T>
constexpr int64_t kWidth = static_cast<int64_t>(hn::MaxLanes(Tag<T>()));

// Adds vectors [at, at + kCount) of the lines of places (row + r, column), r < kHeight.
template <class T, int kHeight, int kCount>
void add_lines(const PatchBand& work, int64_t row, int64_t column, int64_t at) {
  const Tag<T> d;
  const T* const source = static_cast<const T*>(work.source) + row * work.source_row + column * work.source_column;
  T* const target = static_cast<T*>(work.target) + row * work.target_row + column * work.target_column + at;
  const T* weights = static_cast<const T*>(work.weights) + at;
  Vector<T> sums[kHeight][kCount];
#pragma GCC unroll 8
  for (int r = 0; r < kHeight; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < kCount; ++v) sums[r][v] = hn::Zero(d);
  for (int64_t l = 0; l < work.depth; ++l, weights += work.weights_row) {
    Vector<T> line[kCount];
#pragma GCC unroll 8
    for (int v = 0; v < kCount; ++v) line[v] = hn::LoadU(d, weights + v * kWidth<T>);
#pragma GCC unroll 8
    for (int r = 0; r < kHeight; ++r) {
      const Vector<T> factor = hn::Set(d, source[r * work.source_row + l]);
#pragma GCC unroll 8
      for (int v = 0; v < kCount; ++v) sums[r][v] = hn::MulAdd(factor, line[v], sums[r][v]);
    }
  }
  const int64_t left = work.width - at;
#pragma GCC unroll 8
  for (int r = 0; r < kHeight; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < kCount; ++v) {
      T* const to = target + r * work.target_row + v * kWidth<T>;
      const int64_t count = left - v * kWidth<T>;
      if (count >= kWidth<T>) {
        hn::StoreU(hn::Add(hn::LoadU(d, to), sums[r][v]), d, to);
      } else {
        store_part(hn::Add(load_part(to, count), sums[r][v]), to, count);
      }
    }
}

template <class T>
void add(const PatchBand& work) {
  using Kernel = void (*)(const PatchBand&, int64_t, int64_t, int64_t);
  static constexpr auto kKernels = []<int... kIndex>(std::integer_sequence<int, kIndex...>) {
    return std::array<Kernel, sizeof...(kIndex)>{&add_lines<T, kIndex / kVectors + 1, kIndex % kVectors + 1>...};
  }
  (std::make_integer_sequence<int, kRows * kVectors>());
  const int64_t vectors = (work.width + kWidth<T> - 1) / kWidth<T>;
  for (int64_t row = 0; row < work.rows; row += kRows)
    for (int64_t column = 0; column < work.columns; ++column)
      for (int64_t v = 0; v < vectors; v += kVectors) {
        const int64_t height = std::min<int64_t>(kRows, work.rows - row),
                      count = std::min<int64_t>(kVectors, vectors - v);
        kKernels[static_cast<size_t>((height - 1) * kVectors + count - 1)](work, row, column, v * kWidth<T>);
      }
}

template <class T>
constexpr PatchKernels kPatchKernels = {kWidth<T>, &add<T>};

}  // namespace

const PatchKernels& find_patches(bool wide) { return wide ? kPatchKernels<double> : kPatchKernels<float>; }

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::cpu {

const PatchKernels& patch_kernels(Isa isa, bool wide) { TENON_CHOOSE(isa, find_patches(wide)); }

}  // namespace tenon::cpu
#endif

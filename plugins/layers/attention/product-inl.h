// Small matrix products in registers, compiled once per instruction set. SPDX-License-Identifier: Apache-2.0
#if defined(TENON_ATTENTION_PRODUCT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_ATTENTION_PRODUCT_INL_H
#undef TENON_ATTENTION_PRODUCT_INL_H
#else
#define TENON_ATTENTION_PRODUCT_INL_H
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace tenon::attention::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using Tag = hn::ScalableTag<T>;
template <class T>
using Vector = hn::Vec<Tag<T>>;
// Elements of a vector.
template <class T>
constexpr int64_t kWidth = static_cast<int64_t>(hn::MaxLanes(Tag<T>()));

// Loads or stores `count` lanes, fewer than a vector, and touches nothing behind them.
template <class T>
HWY_INLINE Vector<T> load_part(const T* from, int64_t count) {
  const Tag<T> d;
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN T part[HWY_MAX_BYTES / sizeof(T)] = {};
  std::memcpy(part, from, static_cast<size_t>(count) * sizeof(T));
  return hn::Load(d, part);
#else
  return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, from);
#endif
}
template <class T>
HWY_INLINE void store_part(Vector<T> value, T* to, int64_t count) {
  const Tag<T> d;
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN T part[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(value, d, part);
  std::memcpy(to, part, static_cast<size_t>(count) * sizeof(T));
#else
  hn::BlendedStore(value, hn::FirstN(d, static_cast<size_t>(count)), d, to);
#endif
}

// C [rows, columns] = A B, or += if `add`. A [rows, depth] is at a + row * a_row + l * a_step, B [depth, columns] at
// b + l * b_step, C at c + row * c_row; strides are in elements. An element of C is a chain of fused multiply-adds in
// the order of l, from 0 or from itself, so its bits depend on nothing else.
template <class T>
struct Product {
  const T* a;
  int64_t a_row, a_step;
  const T* b;
  int64_t b_step;
  T* c;
  int64_t c_row;
  int64_t rows, columns, depth;
  bool add;
};

#if HWY_TARGET == HWY_AVX3
constexpr int kSums = 24, kMostRows = 8, kMostVectors = 4;  // of 32 registers
#else
constexpr int kSums = 12, kMostRows = 6, kMostVectors = 3;  // of 16 registers
#endif
// Rows of C that are computed at once, if so many vectors of each are.
constexpr int strip_rows(int64_t vectors) { return std::min(kMostRows, kSums / static_cast<int>(vectors)); }

// A few rows by a few vectors of columns; the last vector of a row of B and C may be in part behind the last column.
template <class T, int kRows, int kVectors, bool kPart>
void multiply_strip(const Product<T>& p) {
  const Tag<T> d;
  constexpr int64_t kLanes = kWidth<T>;
  constexpr int kLast = kVectors - 1;
  const int64_t left = p.columns - kLast * kLanes;
  const auto load = [&](const T* from, int v) {
    return kPart && v == kLast ? load_part(from + v * kLanes, left) : hn::LoadU(d, from + v * kLanes);
  };
  Vector<T> sums[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sums[r][v] = p.add ? load(p.c + r * p.c_row, v) : hn::Zero(d);
  const int64_t a_row = p.a_row;
  const T *a = p.a, *b = p.b;
  for (int64_t l = 0; l < p.depth; ++l, a += p.a_step, b += p.b_step) {
    Vector<T> row[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) row[v] = load(b, v);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const Vector<T> factor = hn::Set(d, a[r * a_row]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(factor, row[v], sums[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      T* const to = p.c + r * p.c_row + v * kLanes;
      if (kPart && v == kLast)
        store_part(sums[r][v], to, left);
      else
        hn::StoreU(sums[r][v], d, to);
    }
}

template <class T>
using StripKernel = void (*)(const Product<T>&);

template <class T>
StripKernel<T> strip_kernel(int64_t rows, int64_t vectors, bool part) {
  static constexpr auto kKernels = []<int... kIndex>(std::integer_sequence<int, kIndex...>) {
    constexpr auto kKernel = []<int kAt>(std::integral_constant<int, kAt>) {
      constexpr int kRows = kAt / 2 / kMostVectors + 1, kVectors = kAt / 2 % kMostVectors + 1;
      if constexpr (kRows <= strip_rows(kVectors))
        return StripKernel<T>{&multiply_strip<T, kRows, kVectors, kAt % 2 != 0>};
      return StripKernel<T>{nullptr};
    };
    return std::array{kKernel(std::integral_constant<int, kIndex>())...};
  }
  (std::make_integer_sequence<int, kMostRows * kMostVectors * 2>());
  return kKernels[static_cast<size_t>(((rows - 1) * kMostVectors + vectors - 1) * 2 + (part ? 1 : 0))];
}

template <class T>
void multiply(const Product<T>& all) {
  Product<T> p = all;
  int64_t vectors_left = (all.columns + kWidth<T> - 1) / kWidth<T>;
  for (int64_t j = 0; j < all.columns; j += p.columns) {
    const int64_t groups = (vectors_left + kMostVectors - 1) / kMostVectors;
    const int64_t vectors = (vectors_left + groups - 1) / groups;  // groups of about equal width
    vectors_left -= vectors;
    p.columns = std::min(vectors * kWidth<T>, all.columns - j);
    p.b = all.b + j;
    const bool part = p.columns < vectors * kWidth<T>;
    const int64_t most = strip_rows(vectors);
    for (int64_t row = 0, strips = (all.rows + most - 1) / most; strips > 0; --strips) {
      p.rows = (all.rows - row + strips - 1) / strips;  // strips of about equal height
      p.a = all.a + row * all.a_row;
      p.c = all.c + row * all.c_row + j;
      strip_kernel<T>(p.rows, vectors, part)(p);
      row += p.rows;
    }
  }
}

}  // namespace tenon::attention::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

// Kernels of strips, compiled once per instruction set. A strip is a few rows of a tile of a matrix product; its sums
// are in vector registers, and vectors lie along the columns. SPDX-License-Identifier: Apache-2.0
#if defined(TENON_CPU_GEMM_STRIP_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_CPU_GEMM_STRIP_INL_H
#undef TENON_CPU_GEMM_STRIP_INL_H
#else
#define TENON_CPU_GEMM_STRIP_INL_H
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "pointwise/loops-inl.h"
#include "prefetch.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3
constexpr int kStripRows = 8, kSums = 24, kPanelVectors = 3;  // of 32 registers
#else
constexpr int kStripRows = 6, kSums = 12, kPanelVectors = 2;  // of 16 registers
#endif
constexpr int kMostVectors = 8;

// Elements of a vector.
template <class T>
constexpr int64_t kWidth = static_cast<int64_t>(hn::MaxLanes(Tag<T>()));
// Columns of a panel.
template <class T>
constexpr int64_t kPanel = kPanelVectors* kWidth<T>;

// Vectors along a row of a strip: as many as there are registers for.
constexpr int most_vectors(int rows) { return std::min(kSums / rows, kMostVectors); }

// How a term is added to a sum: a product of numbers; of pairs of bfloat16 numbers, which lie in the bits of a float,
// the products of both, the lower half first.
struct Numbers {
  template <class V>
  static HWY_INLINE V add(V factor, V row, V sum) {
    return hn::MulAdd(factor, row, sum);
  }
};
struct Pairs {
  template <class V>
  static HWY_INLINE V add(V factor, V row, V sum) {
    return hn::MulAdd(upper(factor), upper(row), hn::MulAdd(lower(factor), lower(row), sum));
  }

 private:
  template <class V>
  static HWY_INLINE V lower(V pairs) {
    const hn::DFromV<V> d;
    const hn::RebindToUnsigned<decltype(d)> bits;
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::BitCast(bits, pairs)));
  }
  template <class V>
  static HWY_INLINE V upper(V pairs) {
    const hn::DFromV<V> d;
    const hn::RebindToUnsigned<decltype(d)> bits;
    return hn::BitCast(d, hn::And(hn::BitCast(bits, pairs), hn::Set(bits, 0xffff0000)));
  }
};
#if HWY_TARGET == HWY_AVX3
// The same by the instruction of AVX512_BF16, which sums in an order of its own and takes tiny numbers as 0.
struct DotPairs {
  template <class V>
  static HWY_INLINE V add(V factor, V row, V sum) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(factor.raw), "v"(row.raw));
    return sum;
  }
};
#else
using DotPairs = Pairs;
#endif

// One strip by `kVectors` vectors of columns, over one block of l.
template <class T>
struct Strip {
  const T* a;
  const T* b;
  T* c;
  int64_t a_row, a_step, b_step, c_row;
  int64_t c_column;  // 1; or C is turned, and c_row is 1
  int64_t depth;
  int64_t packed;   // the first row of the tile in a packed A; below 0: A is not packed
  int64_t whole;    // l below it may be read from B in whole vectors, behind the last column, too
  int64_t columns;  // of C: more than kVectors - 1 vectors, at most kVectors
  T alpha;
  bool add;
  const void* const* list;  // of the rows of B, if these lie anywhere; they begin at column `first`
  int64_t first;
};

// Adds the terms [first, last) to the sums. kPart: the last vector of a row of B is read up to the last column only.
// kList: B is a list of rows.
template <class Terms, class T, int kRows, int kVectors, bool kPart, bool kList>
HWY_INLINE void add_terms(const Strip<T>& s, int64_t first, int64_t last, Vector<T> (&sums)[kRows][kVectors]) {
  const Tag<T> d;
  constexpr int64_t kLanes = kWidth<T>, kLast = kVectors - 1;
  const int64_t a_row = s.a_row, a_step = s.a_step, b_step = s.b_step;
  const T* a = s.a + first * a_step;
  const T* b = s.b + first * b_step;
  for (int64_t l = first; l < last; ++l, a += a_step, b += b_step) {
    if constexpr (kList) b = static_cast<const T*>(s.list[l]) + s.first;
    Vector<T> row[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kLast; ++v) row[v] = hn::LoadU(d, b + v * kLanes);
    row[kLast] = kPart ? load_part(b + kLast * kLanes, s.columns - kLast * kLanes) : hn::LoadU(d, b + kLast * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const Vector<T> factor = hn::Set(d, a[r * a_row]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sums[r][v] = Terms::add(factor, row[v], sums[r][v]);
    }
  }
}

// Writes or adds the sums to a turned C.
template <class T, int kRows, int kVectors>
void store_turned(const Strip<T>& s, const Vector<T> (&sums)[kRows][kVectors]) {
  const Tag<T> d;
  constexpr int64_t kLanes = kWidth<T>;
  HWY_ALIGN T rows[kRows][kVectors * kLanes];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) hn::Store(sums[r][v], d, rows[r] + v * kLanes);
  }
  T* to = s.c;
  for (int64_t j = 0; j < s.columns; ++j, to += s.c_column) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) to[r] = s.add ? std::fma(s.alpha, rows[r][j], to[r]) : s.alpha * rows[r][j];
  }
}

template <class Terms, class T, int kRows, int kVectors, bool kList = false>
void multiply_strip(const Strip<T>& s) {
  const Tag<T> d;
  constexpr int64_t kLanes = kWidth<T>;
  Vector<T> sums[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    if (s.c_column == 1) prefetch(s.c + r * s.c_row, kVectors * kLanes * static_cast<int64_t>(sizeof(T)));
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(d);
  }
  add_terms<Terms, T, kRows, kVectors, false, kList>(s, 0, s.whole, sums);
  if (s.whole < s.depth) add_terms<Terms, T, kRows, kVectors, true, kList>(s, s.whole, s.depth, sums);
  if (s.c_column != 1) return store_turned(s, sums);
  const Vector<T> alpha = hn::Set(d, s.alpha);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      T* const to = s.c + r * s.c_row + v * kLanes;
      const int64_t left = s.columns - v * kLanes;
      if (left >= kLanes) {
        hn::StoreU(s.add ? hn::MulAdd(alpha, sums[r][v], hn::LoadU(d, to)) : hn::Mul(alpha, sums[r][v]), d, to);
      } else {
        store_part(s.add ? hn::MulAdd(alpha, sums[r][v], load_part(to, left)) : hn::Mul(alpha, sums[r][v]), to, left);
      }
    }
  }
}

template <class T>
using StripKernel = void (*)(const Strip<T>&);

// Returns the kernel of `rows` rows and `vectors` vectors of columns.
template <class Terms, class T>
StripKernel<T> strip_kernel(int64_t rows, int64_t vectors) {
  static constexpr auto kKernels = []<int... kIndex>(std::integer_sequence<int, kIndex...>) {
    constexpr auto kKernel = []<int kRows, int kVectors>(std::integer_sequence<int, kRows, kVectors>) {
      if constexpr (kVectors <= most_vectors(kRows)) return StripKernel<T>{&multiply_strip<Terms, T, kRows, kVectors>};
      return StripKernel<T>{nullptr};
    };
    return std::array{kKernel(std::integer_sequence<int, kIndex / kMostVectors + 1, kIndex % kMostVectors + 1>())...};
  }
  (std::make_integer_sequence<int, kStripRows * kMostVectors>());
  return kKernels[static_cast<size_t>((rows - 1) * kMostVectors + vectors - 1)];
}

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

// SPDX-License-Identifier: Apache-2.0
#include "matrix_tile.h"

#if defined(__x86_64__) && defined(__linux__)

#ifndef __clang__  // GCC's intrinsics warn of themselves where they are inlined (its bug 105593)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include <algorithm>

#include "bf16_pairs.h"

#define TENON_MATRIX __attribute__((target("avx512f,avx512bw,avx512bf16")))

namespace tenon::cpu {

namespace {

constexpr int64_t kSide = kMatrixStep;
constexpr int64_t kPanel = 3 * kSide;  // panel_columns of float32 with AVX-512

// The first `count` of 16 lanes; none below 1.
__mmask16 first(int64_t count) {
  return static_cast<__mmask16>(count >= kSide ? 0xffff : count <= 0 ? 0 : (1 << count) - 1);
}

// 16 pairs from 32 numbers in a row, of which `count` are read; the others are 0.
TENON_MATRIX inline __m512i pairs_along(const float* from, int64_t count) {
  const __m512 lower = _mm512_maskz_loadu_ps(first(count), from);
  const __m512 upper = _mm512_maskz_loadu_ps(first(count - kSide), from + kSide);
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(upper, lower));
}

// 16 pairs from two rows of 16 numbers, `row` apart, of which `count` are read; `both`: the second row is there.
TENON_MATRIX inline __m512i pairs_down(const float* from, int64_t row, int64_t count, bool both) {
  alignas(64) static constexpr uint16_t kOrder[] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                    8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const __m512 lower = _mm512_maskz_loadu_ps(first(count), from);
  const __m512 upper = both ? _mm512_maskz_loadu_ps(first(count), from + row) : _mm512_setzero_ps();
  return _mm512_permutexvar_epi16(_mm512_load_si512(kOrder),
                                  reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(upper, lower)));
}

// Turns a square of 16 x 16 pairs.
TENON_MATRIX inline void turn(__m512i (&rows)[kSide]) {
  __m512i t[kSide];
  for (int i = 0; i < kSide; i += 4) {
    const __m512i a = _mm512_unpacklo_epi32(rows[i], rows[i + 1]), b = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
    const __m512i c = _mm512_unpacklo_epi32(rows[i + 2], rows[i + 3]);
    const __m512i d = _mm512_unpackhi_epi32(rows[i + 2], rows[i + 3]);
    t[i] = _mm512_unpacklo_epi64(a, c);
    t[i + 1] = _mm512_unpackhi_epi64(a, c);
    t[i + 2] = _mm512_unpacklo_epi64(b, d);
    t[i + 3] = _mm512_unpackhi_epi64(b, d);
  }
  for (int i = 0; i < 4; ++i) {  // lane i of the quarters of t[i], t[i + 4], t[i + 8], t[i + 12]
    const __m512i a = _mm512_shuffle_i32x4(t[i], t[i + 4], 0x88), b = _mm512_shuffle_i32x4(t[i], t[i + 4], 0xdd);
    const __m512i c = _mm512_shuffle_i32x4(t[i + 8], t[i + 12], 0x88);
    const __m512i d = _mm512_shuffle_i32x4(t[i + 8], t[i + 12], 0xdd);
    rows[i] = _mm512_shuffle_i32x4(a, c, 0x88);
    rows[i + 4] = _mm512_shuffle_i32x4(b, d, 0x88);
    rows[i + 8] = _mm512_shuffle_i32x4(a, c, 0xdd);
    rows[i + 12] = _mm512_shuffle_i32x4(b, d, 0xdd);
  }
}

}  // namespace

TENON_MATRIX void round_matrix_rows(const MatrixPart& part, uint32_t* to, int64_t step) {
  const int64_t pairs = pairs_of(part.columns);
  if (!part.turned) {
    for (int64_t i = 0; i < part.rows; ++i)
      for (int64_t l = 0; l < pairs; l += kSide)
        _mm512_mask_storeu_epi32(to + i * step + l, first(pairs - l),
                                 pairs_along(part.from + i * part.row + 2 * l, part.columns - 2 * l));
    return;
  }
  __m512i square[kSide];
  for (int64_t l = 0; l < pairs; l += kSide)
    for (int64_t i = 0; i < part.rows; i += kSide) {
      for (int64_t p = 0; p < kSide; ++p) {
        const int64_t column = 2 * (l + p);
        square[p] = column < part.columns ? pairs_down(part.from + column * part.row + i, part.row, part.rows - i,
                                                       column + 1 < part.columns)
                                          : _mm512_setzero_si512();
      }
      turn(square);
      for (int64_t r = 0; r < std::min(kSide, part.rows - i); ++r)
        _mm512_mask_storeu_epi32(to + (i + r) * step + l, first(pairs - l), square[r]);
    }
}

TENON_MATRIX void round_matrix_panels(const MatrixPart& part, uint32_t* to, int64_t distance) {
  const int64_t pairs = pairs_of(part.rows), end = (part.columns + kPanel - 1) / kPanel * kPanel;
  if (!part.turned) {
    for (int64_t l = 0; l < pairs; ++l, to += kPanel)
      for (int64_t j = 0; j < end; j += kSide)
        _mm512_storeu_si512(
            to + j / kPanel * distance + j % kPanel,
            pairs_down(part.from + 2 * l * part.row + j, part.row, part.columns - j, 2 * l + 1 < part.rows));
    return;
  }
  __m512i square[kSide];
  for (int64_t j = 0; j < end; j += kSide)
    for (int64_t l = 0; l < pairs; l += kSide) {
      for (int64_t c = 0; c < kSide; ++c)
        square[c] = j + c < part.columns ? pairs_along(part.from + (j + c) * part.row + 2 * l, part.rows - 2 * l)
                                         : _mm512_setzero_si512();
      turn(square);
      for (int64_t p = 0; p < std::min(kSide, pairs - l); ++p)
        _mm512_storeu_si512(to + j / kPanel * distance + (l + p) * kPanel + j % kPanel, square[p]);
    }
}

}  // namespace tenon::cpu

#else

namespace tenon::cpu {

void round_matrix_rows(const MatrixPart&, uint32_t*, int64_t) {}
void round_matrix_panels(const MatrixPart&, uint32_t*, int64_t) {}

}  // namespace tenon::cpu

#endif

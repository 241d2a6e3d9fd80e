// SPDX-License-Identifier: Apache-2.0
#include "choice.h"

#include <tenon/device.h>

#include <algorithm>
#include <cstring>

#include "core_type.h"
#include "table.h"

namespace tenon::openblas {

namespace {

double work(int64_t m, int64_t n, int64_t k) {
  return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

// C is halved until there are eight tiles, none has more than kLarge multiplications, and none packs more than kPacked
// elements of A (buffers.h), but not below the sizes for which packing pays.
Tiles packed_tiles(int64_t m, int64_t n, int64_t k) {
  constexpr double kLarge = 1024.0 * 1024.0 * 1024.0, kPacked = 695000;
  Tiles tiles = {m, n};
  int64_t count = 1;
  for (;;) {
    const bool can_rows = tiles.rows >= 256, can_columns = tiles.columns >= 512;
    const bool packs_much = can_rows && work(tiles.rows, 1, k) > kPacked;
    if (count >= 8 && !packs_much && work(tiles.rows, tiles.columns, k) <= kLarge) break;
    if (!can_rows && !can_columns) break;
    if (packs_much || (can_rows && (2 * tiles.rows >= tiles.columns || !can_columns))) {
      tiles.rows = (tiles.rows + 1) / 2;
    } else {
      tiles.columns = (tiles.columns + 1) / 2;
    }
    count *= 2;
  }
  return tiles;
}

// OpenBLAS multiplies without packing as long as M N K is at most a million. Tiles of 32 columns and of as many rows as
// that allows, from 64 down to 16, were the fastest.
constexpr int64_t kUnpackedColumns = 32, kUnpackedWork = 1000000;
Tiles unpacked_tiles(int64_t k) {
  int64_t rows = 64;
  while (rows > 16 && rows * kUnpackedColumns * k > kUnpackedWork) rows /= 2;
  return {rows, kUnpackedColumns};
}

// Returns the index of the size nearest to `size` by ratio.
template <size_t kCount>
size_t nearest(const int64_t (&sizes)[kCount], int64_t size) {
  size_t i = 0;
  while (i + 1 < kCount && size > 0 && size * size > sizes[i] * sizes[i + 1]) ++i;
  return i;
}

const GemmTable& table() {
  const char* name = processor_class();
  for (const GemmTable& table : kGemmTables)
    if (std::strcmp(table.processor, name) == 0) return table;
  // Not measured: another class that has the same kernels.
  for (const GemmTable& table : kGemmTables)
    if ((std::strstr(table.processor, "avx512") != nullptr) == has_small_kernels()) return table;
  return kGemmTables[0];
}

}  // namespace

const char* processor_class() {
#if defined(__x86_64__)
  const bool intel = __builtin_cpu_is("intel") != 0;
  if (has_small_kernels()) return intel ? "intel avx512" : "amd avx512";
  return intel ? "intel avx2" : "amd avx2";
#else
  return "other";
#endif
}

bool can_compute(Kernels kernels, int64_t k) {
  if (kernels != Kernels::kUnpacked) return true;
  const Tiles tiles = unpacked_tiles(k);
  return has_small_kernels() && k <= kUnpackedWork / (tiles.rows * tiles.columns);
}

Kernels choose_kernels(int64_t m, int64_t n, int64_t k, uint32_t flags) {
  if ((flags & TN_TRANSPOSE_A) == 0) return Kernels::kOwn;
  if (m == 1 || n == 1) return Kernels::kOwn;  // the memory limits these
  static const GemmTable& measured = table();
  constexpr int64_t kMost = int64_t{1} << 20;  // of a side whose square is no overflow
  const size_t form = (flags & TN_TRANSPOSE_B) != 0 ? 1 : 0;
  const auto size = [&](int64_t side) { return nearest(kGemmSides, std::min(side, kMost)); };
  const char letter = measured.kernels[form][nearest(kGemmTerms, std::min(k, kMost))][size(m)][size(n)];
  if (letter == 'u' && can_compute(Kernels::kUnpacked, k)) return Kernels::kUnpacked;
  return letter == 'o' ? Kernels::kOwn : Kernels::kPacked;
}

Tiles choose_tiles(Kernels kernels, int64_t m, int64_t n, int64_t k) {
  constexpr double kTaskWork = 65536;  // fewer multiplications are one task
  if (work(m, n, k) <= kTaskWork) return {m, n};
  return kernels == Kernels::kUnpacked ? unpacked_tiles(k) : packed_tiles(m, n, k);
}

}  // namespace tenon::openblas

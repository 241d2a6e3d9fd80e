// SPDX-License-Identifier: Apache-2.0
#include "gemm_choice.h"

#include <tenon/device.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "blas_core.h"
#include "gemm_table.h"

namespace tenon::cpu {

namespace {

double work(int64_t m, int64_t n, int64_t k) {
  return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

// C is one row or column: a tile reads about 2^18 elements of the matrix.
Tiles vector_tiles(int64_t m, int64_t n, int64_t k) {
  const int64_t share = std::max<int64_t>(64, (int64_t{1} << 18) / k / 64 * 64);
  return m == 1 ? Tiles{1, std::min(share, n)} : Tiles{std::min(share, m), 1};
}

// C is halved until there are eight tiles, none has more than kLarge multiplications, and none packs more than kPacked
// elements of A (blas_buffers.h), but not below the sizes for which packing pays.
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
  if (m == 1 || n == 1) return Kernels::kBlas;
  static const GemmTable& measured = table();
  constexpr int64_t kMost = int64_t{1} << 20;  // of a side whose square is no overflow
  const size_t form = (flags & TN_TRANSPOSE_B) != 0 ? 1 : 0;
  const auto size = [&](int64_t side) { return nearest(kGemmSides, std::min(side, kMost)); };
  const char letter = measured.kernels[form][nearest(kGemmTerms, std::min(k, kMost))][size(m)][size(n)];
  if (letter == 'u' && can_compute(Kernels::kUnpacked, k)) return Kernels::kUnpacked;
  return letter == 'o' ? Kernels::kOwn : Kernels::kBlas;
}

// A block of l of the rows of A fits into the second-level cache. Each tile copies its columns of B, so columns are
// halved first, in multiples of `step`: of a vector, or of a panel.
Tiles own_tiles(int64_t m, int64_t n, int64_t k, int64_t step, int64_t most_rows) {
  constexpr int64_t kColumns = 64, kTasks = 8;
  const auto least = static_cast<int64_t>(kTaskWork / std::max(work(1, n, k), 1.0));
  const auto pieces = [](int64_t size, int64_t piece) { return (size + piece - 1) / piece; };
  Tiles tiles = {pieces(m, pieces(m, std::max(most_rows, least))), n};
  while (pieces(m, tiles.rows) * pieces(n, tiles.columns) < kTasks) {
    if (work(tiles.rows, tiles.columns, k) < 4.0 * kTaskWork) break;
    if (tiles.columns < kColumns) break;
    tiles.columns = (tiles.columns / 2 + step - 1) / step * step;
  }
  return tiles;
}

int64_t packed_rows() {
  // Beside the panels that a strip is multiplied by (kPackedGroup of gemm_tile.cpp), in bytes of float32.
  constexpr int64_t kPanels = int64_t{8} * 48 * 320 * 4, kRow = int64_t{320} * 4, kStep = 64;
  static const int64_t rows = [] {
    const auto cache = static_cast<int64_t>(sysconf(_SC_LEVEL2_CACHE_SIZE));
    return std::clamp<int64_t>((cache - cache / 8 - kPanels) / kRow / kStep * kStep, 128, 1024);
  }();
  return rows;
}

Tiles choose_tiles(Kernels kernels, int64_t m, int64_t n, int64_t k) {
  constexpr int64_t kVector = 32;
  if (kernels == Kernels::kOwn) return own_tiles(m, n, k, kVector);
  if (work(m, n, k) <= kTaskWork) return {m, n};
  if (m == 1 || n == 1) return vector_tiles(m, n, k);
  return kernels == Kernels::kUnpacked ? unpacked_tiles(k) : packed_tiles(m, n, k);
}

}  // namespace tenon::cpu

// One tile of a matrix product, on the calling thread. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <numeric>

#include "pointwise/kernels.h"

namespace tenon::cpu {

// C [rows, columns] = alpha A B, or += if `add`. A [rows, depth] is at a + row * a_row + l * a_step, B [depth, columns]
// at b + l * b_step + column * b_column, C at c + row * c_row + column; strides are in elements, and one of a_row and
// a_step is 1, as one of b_step and b_column. depth is at least 1. A column of a product has a_step 1.
struct GemmTile {
  const void* a;
  const void* b;
  void* c;
  int64_t rows, columns, depth;
  int64_t a_row, a_step;
  int64_t b_step, b_column;
  int64_t c_row;
  double alpha;
  bool add;
  int64_t block;  // terms of a block of a sum: sum_block
  // Not null: where the rows lie, anywhere, of A if C is a column, else of B, in place of a or b; the latter begin at
  // column `first`.
  const void* const* list;
  // Above 0: b is a whole packed B of so many columns, and the tile begins at its column `first`, that of a panel.
  int64_t packed_columns, first;
  // Above 0: a is a whole packed A of so many rows, and the tile begins at its row first_row. B is packed, too.
  int64_t packed_rows, first_row;
  void* panels;  // kPanelMemory bytes if the kernel may copy B
};

// Whether tile_kernel or pairs_kernel may copy B, if it is not packed and C not a column.
inline constexpr int64_t kCopiedTerms = 8;  // fewer rows of B are read where they lie, if its columns are neighbours
[[nodiscard]] inline bool may_copy(const GemmTile& tile) {
  return tile.b_column != 1 || (tile.rows > 12 && tile.depth >= kCopiedTerms);
}

// A packed B [depth, columns] is a list of blocks of l, of `block` rows each but the last; a block is a list of panels,
// and a panel holds panel_columns() columns, row after row. The columns are filled up to whole panels.
[[nodiscard]] int64_t panel_columns(Isa isa, bool wide);
// A packed A [rows, depth] is the same of its columns and rows: a list of blocks of l, a block is a list of strips, and
// a strip holds strip_rows() rows, one l after the other.
[[nodiscard]] int64_t strip_rows(Isa isa);
// Packs the panels [first, last) of B, which lies as in GemmTile; or the strips of A, which lies as [depth, columns].
struct GemmPack {
  const void* b;
  void* packed;
  int64_t columns, depth;
  int64_t b_step, b_column;
  int64_t block;
  int64_t first, last;
};
using PackKernel = void (*)(const GemmPack& pack);
[[nodiscard]] PackKernel pack_kernel(Isa isa, bool wide);
[[nodiscard]] PackKernel strips_kernel(Isa isa, bool wide);

// Most terms of a block of a sum (gemm_tile.cpp): so many terms of a strip of A and of a panel of B fill most of a
// first-level cache of 32 KiB.
template <class T>
inline constexpr int64_t kSumBlock = sizeof(T) == 4 ? 320 : 256;

// Returns the terms of a block: sums of `depth` terms are cut into the fewest blocks of at most `most`, of equal length
// but for the last, and each a multiple of `step` but for the last.
[[nodiscard]] constexpr int64_t sum_block(int64_t depth, int64_t most, int64_t step = 1) {
  const int64_t blocks = (depth + most - 1) / most;
  return ((depth + blocks - 1) / blocks + step - 1) / step * step;
}

// Whether `count` lines that are so many bytes apart have fewer sets of the second-level cache than they need: it has
// 1,024 sets of 8 ways at least. Then a transposed A is copied before it is multiplied.
[[nodiscard]] constexpr bool shares_sets(int64_t bytes, int64_t count) {
  constexpr int64_t kLine = 64, kSets = 1024, kWays = 8;
  return bytes % kLine == 0 && count > kWays * kSets / std::gcd(bytes / kLine, kSets);
}

using TileKernel = void (*)(const GemmTile& tile);
// Returns the kernel of float32, or of float64 if `wide`. `column`: that of products whose C has one column; the bytes
// of B are then those of [depth].
[[nodiscard]] TileKernel tile_kernel(Isa isa, bool wide, bool column);
// Returns the kernel of tiles of one row or a few, whose B is a list of rows.
[[nodiscard]] TileKernel list_kernel(Isa isa, bool wide);
// Returns the kernel for pairs of bfloat16 numbers (bf16_pairs.h), which A and B have in place of float32 numbers;
// depth counts pairs, and C is float32.
[[nodiscard]] TileKernel pairs_kernel(Isa isa);

}  // namespace tenon::cpu

// One tile of a matrix product, on the calling thread. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

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
  // Not null: where the rows lie, anywhere, of A if C is a column, else of B, in place of a or b; the latter begin at
  // column `first`.
  const void* const* list;
  // Above 0: b is a whole packed B of so many columns, and the tile begins at its column `first`, that of a panel.
  int64_t packed_columns, first;
};

// A packed B [depth, columns] is a list of blocks of l, as gemm_tile.cpp cuts them; a block is a list of panels, and a
// panel holds panel_columns() columns, row after row. The columns are filled up to whole panels.
[[nodiscard]] int64_t panel_columns(Isa isa, bool wide);
// Packs the panels [first, last) of B, which lies as in GemmTile.
struct GemmPack {
  const void* b;
  void* packed;
  int64_t columns, depth;
  int64_t b_step, b_column;
  int64_t first, last;
};
using PackKernel = void (*)(const GemmPack& pack);
[[nodiscard]] PackKernel pack_kernel(Isa isa, bool wide);

// Most terms of a block of a sum (gemm_tile.cpp): so many terms of a strip of A and of a panel of B fill most of a
// first-level cache of 32 KiB.
template <class T>
inline constexpr int64_t kSumBlock = sizeof(T) == 4 ? 320 : 256;

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

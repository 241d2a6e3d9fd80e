// Products in bfloat16 by the matrix instructions of AMX: tiles of them, and factors in the form that they read.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gemm_tile.h"

namespace tenon::cpu {

// Most pairs (bf16_pairs.h) of a block of a sum here, and what their number is a multiple of but for the last block.
inline constexpr int64_t kMatrixBlock = 512, kMatrixStep = 16;

// Whether the processor has the instructions (AMX_BF16, with AVX-512 and its AVX512_BF16), and the system lets this
// process use them: Linux is asked once.
[[nodiscard]] bool has_matrix_tiles();

// C [rows, columns] = alpha A B, or += if tile.add, of pairs: a_step is 1, and B is packed with blocks of
// sum_block(depth, kMatrixBlock, kMatrixStep).
void multiply_matrix_tile(const GemmTile& tile);

// Returns the pairs from a row of A to the next, for rows of so many: rows begin at cache lines, and not all in the
// same sets of a cache.
[[nodiscard]] constexpr int64_t matrix_row(int64_t pairs) {
  const int64_t lines = (pairs + kMatrixStep - 1) / kMatrixStep;
  return (lines % 2 == 0 ? lines + 1 : lines) * kMatrixStep;
}

// A matrix of float32 numbers: element (i, j) is at from[i * row] + j, or, if it is turned, at from[j * row + i].
struct MatrixPart {
  const float* from;
  int64_t row, rows, columns;
  bool turned;
};
// Rounds to pairs of neighbours in a row: to [rows, pairs_of(columns)], rows `step` pairs apart.
void round_matrix_rows(const MatrixPart& part, uint32_t* to, int64_t step);
// Rounds to pairs of neighbours in a column, in panels, each `distance` pairs behind the one before: [pairs_of(rows),
// panel_columns]. The columns of the last one are filled up with 0.
void round_matrix_panels(const MatrixPart& part, uint32_t* to, int64_t distance);

}  // namespace tenon::cpu

// Products in bfloat16: both factors are rounded into the workspace, as pairs (bf16_pairs.h), and multiplied by the
// kernels of gemm_tile.cpp, which sum in float32, or by matrix instructions (matrix_tile.h). With AVX512_BF16 they take
// half the time of products in float32, with AMX_BF16 less than a fifth; without, they take longer.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "primitives/gemm.h"

namespace tenon::cpu {

// Whether the product is one in bfloat16, which rounds its factors if rounded_bytes is not 0.
[[nodiscard]] bool is_rounded(const tn_gemm& gemm);
// Whether matrix instructions compute the product.
[[nodiscard]] bool takes_matrix_tiles(const tn_gemm& gemm);

// Bytes of workspace of round_factors, at the bounds of the sizes. 0: the product stays as it is.
[[nodiscard]] uint64_t rounded_bytes(const tn_gemm& gemm);

// Replaces the factors by rounded ones, if the product is one in bfloat16. Those of one column stay: they read each
// number once, so that rounding costs more than it saves.
void round_factors(const tn_execution& execution, uint8_t* workspace, Product* product);

// Of a product in bfloat16 that reads B packed: bytes of B [k, n] in panels, of the workspace in which round_panels
// puts it there, and of that of round_rows.
[[nodiscard]] uint64_t rounded_panels_bytes(int64_t n, int64_t k);
[[nodiscard]] uint64_t rounding_bytes(const tn_gemm& gemm, int64_t n, int64_t k);
[[nodiscard]] uint64_t rounded_rows_bytes(const tn_gemm& gemm);

// Rounds B of one matrix [k, n], or [n, k] with TN_TRANSPOSE_B, into panels of pairs.
void round_panels(const tn_execution& execution, const tn_gemm& gemm, int64_t n, int64_t k, const void* from,
                  uint8_t* workspace, void* to);
// Replaces A by a rounded one, of a product whose B round_panels made.
void round_rows(const tn_execution& execution, uint8_t* workspace, Product* product);

}  // namespace tenon::cpu

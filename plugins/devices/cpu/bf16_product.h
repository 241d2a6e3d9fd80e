// Products in bfloat16: both factors are rounded into the workspace, as pairs (bf16_pairs.h), and multiplied by the
// kernels of gemm_tile.cpp, which sum in float32, or by matrix instructions (matrix_tile.h). With AVX512_BF16 they take
// half the time of products in float32, with AMX_BF16 less than a fifth; without, they take longer.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "primitives/gemm.h"

namespace tenon::cpu {

// Whether matrix instructions compute the product (matrix_tile.h).
[[nodiscard]] bool takes_matrix_tiles(const tn_gemm& gemm);

// Bytes of workspace of round_factors, at the bounds of the sizes. 0: the product stays as it is.
[[nodiscard]] uint64_t rounded_bytes(const tn_gemm& gemm);

// Replaces the factors by rounded ones, if the product is one in bfloat16. Those of one column stay: they read each
// number once, so that rounding costs more than it saves.
void round_factors(const tn_execution& execution, uint8_t* workspace, Product* product);

}  // namespace tenon::cpu

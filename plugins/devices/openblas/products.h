// Products of OpenBLAS. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device.h>

#include <cstdint>

#include "choice.h"

namespace tenon::openblas {

extern const tn_gemm_table gemm_table;

struct Sizes {
  int64_t batch, m, n, k;
};
struct Operands {
  const uint8_t* a;  // [batch, k, m]
  const uint8_t* b;  // [batch, k, n]; with TN_TRANSPOSE_B [batch, n, k]
  uint8_t* c;        // [batch, m, n]
  bool add;          // adds to C
};
// C[i] = alpha A[i]^T op(B[i]) for i in [0, batch), by these kernels, not kOwn; all sizes are at least 1. A task of the
// host's threads is a tile.
tn_status multiply(const tn_gemm& gemm, Kernels kernels, const Sizes& sizes, const Operands& operands,
                   const tn_execution& execution);

}  // namespace tenon::openblas

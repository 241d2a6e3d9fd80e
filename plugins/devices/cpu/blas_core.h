// Which of OpenBLAS's kernels this process uses, and the packing buffers of concurrent calls (blas_core.cpp).
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tenon::cpu {

// Products whose M N K is up to a million run without packing (OpenBLAS's small-matrix kernels, AVX-512 only).
[[nodiscard]] bool has_small_kernels();

}  // namespace tenon::cpu

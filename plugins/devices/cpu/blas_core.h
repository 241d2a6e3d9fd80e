// Which of OpenBLAS's kernels this process uses (blas_core.cpp). SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tenon::cpu {

// Products whose M N K is up to a million run without packing (OpenBLAS's small-matrix kernels, AVX-512 only).
[[nodiscard]] bool has_small_kernels();

// The kernels are SkylakeX's or Haswell's, so that it is known how much they pack.
[[nodiscard]] bool knows_core();

}  // namespace tenon::cpu

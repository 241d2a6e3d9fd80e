// Which of OpenBLAS's kernels this process uses (core_type.cpp). SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tenon::openblas {

// Whether products with M N K up to a million run without packing (OpenBLAS's small-matrix kernels, AVX-512 only).
[[nodiscard]] bool has_small_kernels();

// Returns the name of OpenBLAS's core for a processor with these instructions, or null if OpenBLAS is to detect it.
[[nodiscard]] char* core_for(bool avx512, bool avx2);

// Whether the kernels are SkylakeX's or Haswell's, of which it is known how much they pack.
[[nodiscard]] bool knows_core();

}  // namespace tenon::openblas

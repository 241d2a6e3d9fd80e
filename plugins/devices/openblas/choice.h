// Which products OpenBLAS computes, and their tiles. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tenon::openblas {

// The size of a tile of C, in elements.
struct Tiles {
  int64_t rows, columns;
};

enum class Kernels : uint8_t {
  kOwn,       // those of the device cpu
  kPacked,    // OpenBLAS's, which pack A and B for each tile
  kUnpacked,  // OpenBLAS's for small matrices, which read A and B where they are
};

// Returns the class of this processor in the table (table.h), such as "amd avx512".
[[nodiscard]] const char* processor_class();

// Returns the kernels of a product of these sizes, each at least 1: kOwn, unless A is transposed. They follow from the
// sizes, the flags and the class of the processor, and their bits differ.
[[nodiscard]] Kernels choose_kernels(int64_t m, int64_t n, int64_t k, uint32_t flags);

// Whether these kernels can compute products of k terms on this processor.
[[nodiscard]] bool can_compute(Kernels kernels, int64_t k);

// Returns the tiles into which kernels other than kOwn cut C [m, n], whatever the number of threads: the bits of the
// result depend on them.
[[nodiscard]] Tiles choose_tiles(Kernels kernels, int64_t m, int64_t n, int64_t k);

}  // namespace tenon::openblas

// Which kernels compute a product, and its tiles. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tenon::cpu {

// Fewer multiplications than this are one task: a second one would cost more than it saves.
inline constexpr int64_t kTaskWork = 65536;

// The size of a tile of C, in elements.
struct Tiles {
  int64_t rows, columns;
};

enum class Kernels : uint8_t {
  kOwn,       // those of gemm_tile.cpp
  kBlas,      // OpenBLAS's, which pack A and B for each tile
  kUnpacked,  // OpenBLAS's for small matrices, which read A and B where they are
};

// Returns the class of this processor in the table (gemm_table.h), such as "amd avx512".
[[nodiscard]] const char* processor_class();

// Returns the kernels of a product of these sizes, each at least 1: kOwn, unless A is transposed. They follow from the
// sizes, the flags and the class of the processor, and their bits differ.
[[nodiscard]] Kernels choose_kernels(int64_t m, int64_t n, int64_t k, uint32_t flags);

// Whether these kernels can compute products of k terms on this processor.
[[nodiscard]] bool can_compute(Kernels kernels, int64_t k);

// Returns the tiles into which these kernels cut C [m, n], whatever the number of threads. Those of kOwn change no bit
// of the result.
[[nodiscard]] Tiles choose_tiles(Kernels kernels, int64_t m, int64_t n, int64_t k);

// Returns the tiles of kOwn, whose columns are a multiple of `step` unless there is one tile in a row of tiles. They
// have about most_rows rows at most.
[[nodiscard]] Tiles own_tiles(int64_t m, int64_t n, int64_t k, int64_t step, int64_t most_rows = 128);

// Returns the most rows of a tile whose B is packed: those of which A's part of a block of sums stays in the
// second-level cache of this processor. A tile reads all its columns of B from farther away.
[[nodiscard]] int64_t packed_rows();

}  // namespace tenon::cpu

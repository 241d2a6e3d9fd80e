// The tiles of a matrix product. They change no bit of the result. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tenon::cpu {

// Fewer multiplications than this are one task: a second one would cost more than it saves.
inline constexpr int64_t kTaskWork = 65536;

// The size of a tile of C, in elements.
struct Tiles {
  int64_t rows, columns;
};

// Returns the tiles into which C [m, n] is cut for so many threads. Their columns are a multiple of `step` unless there
// is one tile in a row of tiles; they have about most_rows rows at most.
[[nodiscard]] Tiles choose_tiles(int64_t m, int64_t n, int64_t k, int64_t step, int32_t workers, int64_t most_rows);

// Returns the most rows of a tile whose B is packed: those of which A's part of a block of sums stays in the
// second-level cache of this processor. A tile reads all its columns of B from farther away.
[[nodiscard]] int64_t packed_rows();

}  // namespace tenon::cpu

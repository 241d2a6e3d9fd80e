// Tiles of products, of which a block computes 64 x 64 elements. SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tenon::cuda {

// For kernels of 256 threads, each of which computes 4 x 4 elements, 16 apart, from 16 terms at a time. A factor's tile
// is [term][row or column], a column longer than it needs to be: threads that write one row of terms then use other
// banks.
inline constexpr const char* kTileText = R"cuda(
typedef F Tile[16][65];
// Adds 16 terms to each element, in their order.
__device__ void add_terms(F (&sum)[4][4], const Tile& left, const Tile& right) {
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  for (int k = 0; k < 16; ++k)
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 4; ++j) sum[i][j] += left[k][y + 16 * i] * right[k][x + 16 * j];
}
)cuda";

}  // namespace tenon::cuda

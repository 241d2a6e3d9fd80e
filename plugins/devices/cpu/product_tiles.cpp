// SPDX-License-Identifier: Apache-2.0
#include "product_tiles.h"

#include <unistd.h>

#include <algorithm>

namespace tenon::cpu {

namespace {

double work(int64_t m, int64_t n, int64_t k) {
  return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

}  // namespace

// A block of l of the rows of A fits into the second-level cache. Each tile copies its columns of B, so columns are
// halved first, in multiples of `step`: of a vector, or of a panel. One thread needs no tiles for others.
Tiles choose_tiles(int64_t m, int64_t n, int64_t k, int64_t step, int32_t workers, int64_t most_rows) {
  constexpr int64_t kColumns = 64, kTasks = 8;
  const auto least = static_cast<int64_t>(kTaskWork / std::max(work(1, n, k), 1.0));
  const auto pieces = [](int64_t size, int64_t piece) { return (size + piece - 1) / piece; };
  Tiles tiles = {pieces(m, pieces(m, std::max(most_rows, least))), n};
  if (workers == 1) return tiles;
  while (pieces(m, tiles.rows) * pieces(n, tiles.columns) < kTasks) {
    if (work(tiles.rows, tiles.columns, k) < 4.0 * kTaskWork) break;
    if (tiles.columns < kColumns) break;
    tiles.columns = (tiles.columns / 2 + step - 1) / step * step;
  }
  return tiles;
}

int64_t packed_rows() {
  // Beside the panels that a strip is multiplied by (kPackedGroup of gemm_tile.cpp), in bytes of float32.
  constexpr int64_t kPanels = int64_t{8} * 48 * 320 * 4, kRow = int64_t{320} * 4, kStep = 64;
  static const int64_t rows = [] {
    const auto cache = static_cast<int64_t>(sysconf(_SC_LEVEL2_CACHE_SIZE));
    return std::clamp<int64_t>((cache - cache / 8 - kPanels) / kRow / kStep * kStep, 128, 1024);
  }();
  return rows;
}

}  // namespace tenon::cpu

// CUDA C++ for a pointwise program, and how its kernels are launched.
//
// The text depends on the program and the element types, hardly on sizes: those are read on the device. A reduction's
// tree follows from the numbers of rows and columns alone. Work is cut into parts by these numbers, and a launched
// block takes part after part, so neither the number of blocks nor the device changes a bit of the result.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device.h>

#include <cstdint>
#include <string>
#include <vector>

#include "plan.h"

namespace tenon::cuda {

constexpr int64_t kThreads = 256;        // of a block, in every kernel
constexpr int64_t kTile = 4 * kThreads;  // elements that a block takes at once
constexpr int64_t kMostParts = 512;      // of a reduction to SCALAR
constexpr int64_t kStripRows = 128;      // rows of a strip, until there are kMostStrips
constexpr int64_t kMostStrips = 128;     // of a reduction to PER_COLUMN
constexpr int64_t kStripColumns = 32;    // columns of a block there
constexpr int64_t kWarp = 32;
constexpr int64_t kWarpColumns = 1024;  // up to so many columns a row gets a warp, beyond it a block

// The kernels' one argument: first pointers and numbers of eight bytes, then a byte per output.
//   symbols; rows; columns; inputs[]; outputs[]; slots[]; requests[]     (empty lists take no room)
struct Extent {
  int64_t coefficient;
  int64_t offset;
  int64_t symbol;
};

struct Source {
  std::string text;
  std::vector<Grid> grids;  // of kernel0, kernel1 ...
  std::vector<Slot> slots;
  int64_t group = kThreads;  // threads that share a row in Grid::kRows
};

// Sets *missing to the first element type that is not offered, where there is one; the text is then of no use.
[[nodiscard]] Source generate(const tn_pointwise_site& site, tn_dtype* missing);

}  // namespace tenon::cuda

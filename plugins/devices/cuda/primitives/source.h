// CUDA C++ for a pointwise program, and how its kernels are launched.
//
// The text depends on the program, the element types, and whether there is one row, one column, or rows of at most
// kWarpColumns; the kernels read sizes from device memory. The tree of a reduction depends on the numbers of rows and
// columns alone. They determine the parts of the work, and a launched block computes part after part, so neither the
// number of blocks nor the device changes a bit of the result.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device.h>

#include <cstdint>
#include <string>
#include <vector>

#include "plan.h"
#include "runtime/kernels.h"

namespace tenon::cuda {

constexpr int64_t kStripRows = 128;    // rows of a strip, until there are kMostStrips
constexpr int64_t kMostStrips = 128;   // of a reduction to PER_COLUMN
constexpr int64_t kStripColumns = 32;  // columns of a block there
constexpr int64_t kWarp = 32;
constexpr int64_t kWarpColumns = 1024;  // a row of at most so many columns is a warp's, a longer one a block's

// The operands and buffers are those of the program and of the plan. a.sizes: rows and columns of the grid; an update
// has as many rows as a.rows. a.buffers: values of type F or I, of the shape Plan::buffers[k].shape. Of an update of
// rows: which inputs and outputs are tables, of which row ids[r] of a.rows takes part in row r of the grid. Null: none.
struct Indexed {
  const uint8_t* inputs = nullptr;
  const uint8_t* outputs = nullptr;
  [[nodiscard]] bool any() const { return inputs != nullptr; }
};

struct Source {
  std::string text;
  std::vector<Grid> grids;  // of kernel0, kernel1 ...
  std::vector<Buffer> buffers;
  int64_t group = kThreads;  // threads that share a row in Grid::kRows
};

// Generates the kernels. If an element type is not offered, sets *missing to the first such type, and the text is
// empty.
[[nodiscard]] Source generate(const tn_pointwise_site& site, const Indexed& indexed, tn_dtype* missing);

}  // namespace tenon::cuda

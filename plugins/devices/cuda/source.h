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

namespace tenon::cuda {

constexpr int64_t kThreads = 256;        // of a block, in every kernel
constexpr int64_t kTile = 4 * kThreads;  // elements that a block takes at once
constexpr int64_t kMostParts = 512;      // of a reduction to SCALAR
constexpr int64_t kStripRows = 128;      // rows of a strip, until there are kMostStrips
constexpr int64_t kMostStrips = 128;     // of a reduction to PER_COLUMN
constexpr int64_t kStripColumns = 32;    // columns of a block there
constexpr int64_t kWarp = 32;
constexpr int64_t kWarpColumns = 1024;  // a row of at most so many columns is a warp's, a longer one a block's

// The one argument of every kernel is struct Arguments of the text, passed by value. Empty lists are left out.
//   const Int64* symbols       value of each symbol, in device memory
//   const Random* random       seed and step, in device memory
//   Extent rows, columns       of the grid
//   const void* inputs[]       elements of type site.inputs[k]; [rows, columns], [rows], [columns] or [1] by extent
//   void* outputs[]            likewise, of type site.outputs[k]; may be null if the request is NONE
//   void* buffers[]            workspace: values of type F or I, of the shape Plan::buffers[k].shape
//   unsigned char requests[]   TN_REQUEST_* of each output
// The value of an Extent is coefficient * symbols[symbol] + offset, or offset if symbol is TN_SYMBOL_NONE.
struct Extent {
  int64_t coefficient;
  int64_t offset;
  int64_t symbol;
};

struct Source {
  std::string text;
  std::vector<Grid> grids;  // of kernel0, kernel1 ...
  std::vector<Buffer> buffers;
  int64_t group = kThreads;  // threads that share a row in Grid::kRows
};

// Generates the kernels. If an element type is not offered, sets *missing to the first such type, and the text is
// empty.
[[nodiscard]] Source generate(const tn_pointwise_site& site, tn_dtype* missing);

}  // namespace tenon::cuda

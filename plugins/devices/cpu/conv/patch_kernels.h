// Kernels of transposed convolutions to few channels: each place of the source adds a patch to the target.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "pointwise/kernels.h"

namespace tenon::cpu {

// A line of the patches of rows x columns places. Place (r, q) is at source + r * source_row + q * source_column, its
// line at target + r * target_row + q * target_column; all distances are in elements. Lines of different rows do not
// overlap.
//   line [width] += sum over d < depth of source[d] * weights[d, width]
struct PatchBand {
  const void* source;
  void* target;
  int64_t rows, columns;
  int64_t source_row, source_column, target_row, target_column;
  const void* weights;
  int64_t weights_row;  // elements between rows of the weights; whole vectors can be read behind the last one
  int64_t depth, width;
};

// The functions of an instruction set and type.
struct PatchKernels {
  int64_t lanes;  // of a vector
  void (*add)(const PatchBand& work);
};
[[nodiscard]] const PatchKernels& patch_kernels(Isa isa, bool wide);

}  // namespace tenon::cpu

// The gradient of weights from copies by planes: for convolutions whose taps fill only a part of a vector.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "conv/kernels.h"

namespace tenon::cpu {

// The source is planar as in NarrowBand, and so is the target: rows of positions, whole vectors with 0 behind the last
// position, and `plane` elements between the columns, of which there are `width`. Whole vectors of the source are read
// behind the last position too.
//   sums [width, row terms] += a vector each, to whose lanes the products of every `lanes`th position are added
struct PlanesBand {
  Band band;
  int64_t plane;
  void* sums;
  int64_t row, width;  // vectors between the sums of two columns, columns
};

struct PlaneKernels {
  int64_t lanes;
  void (*add)(const PlanesBand& work);
  // Writes to sums[i] the sum of the lanes of vector i.
  void (*fold)(const void* vectors, int64_t count, void* sums);
};
// wide: of float64, else of float32.
[[nodiscard]] const PlaneKernels& plane_kernels(Isa isa, bool wide);

}  // namespace tenon::cpu

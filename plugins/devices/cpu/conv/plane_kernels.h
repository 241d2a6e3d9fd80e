// The gradient of weights from copies by planes: for convolutions whose taps fill only a part of a vector.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "conv/kernels.h"

namespace tenon::cpu {

// Bytes of the partial sums of a weight, whatever the width of a vector, on which no bit of a gradient may depend.
inline constexpr int64_t kPlaneBytes = 64;

// The source is planar as in NarrowBand, and so is the target: rows of positions, filled up with 0 to whole lanes,
// and `plane` elements between the columns, of which there are `width`. Whole vectors of the source are read
// behind the last position too.
//   sums [width, row terms] += `lanes` each: lane i takes the products of positions i, i + lanes, ... of every row
struct PlanesBand {
  Band band;
  int64_t plane;
  void* sums;
  int64_t row, width;  // lists of lanes between the sums of two columns, columns
};

struct PlaneKernels {
  int64_t lanes;
  void (*add)(const PlanesBand& work);
  // Writes to sums[i] the sum of list i of lanes.
  void (*fold)(const void* vectors, int64_t count, void* sums);
};
// wide: of float64, else of float32.
[[nodiscard]] const PlaneKernels& plane_kernels(Isa isa, bool wide);

}  // namespace tenon::cpu

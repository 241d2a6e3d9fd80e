// Kernels of pooling over windows. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "pointwise/kernels.h"

namespace tenon::cpu {

// The elements of a window that lie in the image: numbers first + i step[0] + j step[1] + k step[2] of the image, for
// i, j, k below count. `image` is the image's first element, of `channels` values each. From there `readable` values
// may be read; behind the results, and the positions, `spare` values may be overwritten. `windows` of this form follow
// one another, each `apart` elements of the image behind the one before; their results are neighbours.
struct PoolWindow {
  const void* image;
  int64_t channels, readable, spare;
  int64_t first;
  int64_t count[3], step[3];
  int64_t windows, apart;
};

struct PoolKernels {
  // results [windows, channels] = or += the sums.
  void (*sum)(const PoolWindow& window, void* results, bool add);
  // results [windows, channels] = or += the maxima, unless null; positions [windows, channels] the numbers of the first
  // ones, unless null.
  void (*max)(const PoolWindow& window, void* results, bool add, int32_t* positions);
};
// wide: of float64, else of float32.
[[nodiscard]] const PoolKernels& pool_kernels(Isa isa, bool wide);

}  // namespace tenon::cpu

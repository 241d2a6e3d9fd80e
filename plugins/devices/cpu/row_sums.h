// Sums of rows that lie anywhere in memory. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "pointwise/kernels.h"

namespace tenon::cpu {

// What a row is multiplied by: scale * (weight * row), rounded after each multiplication.
struct RowFactor {
  double weight, scale;
};

// Row u of the result, at to + target * width, is the sum of the sources starts[u] to starts[u + 1] - 1, in their
// order. The target is targets[u], whose old values are overwritten; if that is negative, ~targets[u], to which the sum
// is added source by source.
struct RowSums {
  int64_t width;
  int64_t count = 0;                   // of the sources of all rows
  const uint32_t* starts = nullptr;    // [rows + 1]
  const int64_t* targets = nullptr;    // [rows]
  const uint8_t** sources = nullptr;   // [count]; [width] each
  const RowFactor* factors = nullptr;  // [count]; null: the sources as they are
  uint8_t* to = nullptr;
};

// Computes rows [first, last).
using RowSumKernel = void (*)(const RowSums& sums, int64_t first, int64_t last);
// Returns the kernel of float32, or of float64 if `wide`. `products`: with factors; a sum then begins at +0, as that of
// a matrix product does.
[[nodiscard]] RowSumKernel row_sum_kernel(Isa isa, bool wide, bool products);

}  // namespace tenon::cpu

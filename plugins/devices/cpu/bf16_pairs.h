// Float32 numbers rounded to pairs of bfloat16 numbers, the factors of products in bfloat16. A pair has the bits of two
// numbers, the first one's in its lower half. Rounded to the nearest, halves to the even one; NaN stays NaN.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "pointwise/kernels.h"

namespace tenon::cpu {

[[nodiscard]] inline int64_t pairs_of(int64_t numbers) { return (numbers + 1) / 2; }

struct PairKernels {
  // from [rows, columns] -> to [rows, pairs_of(columns)]: pairs of neighbours in a row. Behind the last number is 0.
  void (*along)(const float* from, int64_t rows, int64_t columns, uint32_t* to);
  // from [rows, columns] -> to [pairs_of(rows), columns]: pairs of neighbours in a column. Below the last row is 0.
  void (*down)(const float* from, int64_t rows, int64_t columns, uint32_t* to);
};
[[nodiscard]] const PairKernels& pair_kernels(Isa isa);

}  // namespace tenon::cpu

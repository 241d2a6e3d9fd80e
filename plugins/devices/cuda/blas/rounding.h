// Factors rounded to bfloat16. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels.h"

namespace tenon::cuda {

// inputs: A, B float32; outputs: the same in bfloat16, to the nearest, halves to the even one.
[[nodiscard]] Kernels rounding_kernels(const tn_gemm& gemm);

}  // namespace tenon::cuda

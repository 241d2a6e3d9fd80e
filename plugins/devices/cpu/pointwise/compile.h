// Machine code for runs of arithmetic calls. A value that only its run reads stays in a register of the processor,
// where kernels, one after another, write and read a tile of memory. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "pointwise/generate_code.h"

namespace tenon::cpu {

// Replaces each run of neighbouring arithmetic calls over the same elements by one call of a function with the same
// bits. Returns the functions, which the passes need as long as they run. Null, and no call is replaced, where memory
// cannot be executable, on processors without AVX2, and for what VectorCode does not have. Throws std::bad_alloc.
[[nodiscard]] std::shared_ptr<const Functions> compile(std::vector<Code>& passes, FunctionCache& cache);

}  // namespace tenon::cpu

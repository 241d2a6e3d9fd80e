// Programs that cublasLt runs on the result of a product. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device.h>

namespace tenon::cuda {

enum class Epilogue {
  kNone,      // the library does not know the program
  kBias,      // C + bias, a value for each column
  kBiasRelu,  // max(C + bias, 0)
};

[[nodiscard]] Epilogue epilogue_of(const tn_gemm_epilogue& epilogue);

}  // namespace tenon::cuda

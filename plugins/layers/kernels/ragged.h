// Sequences as kernels of several plugins read them. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/tensor.h>

#include <cstdint>

namespace tenon::kernels {

// The offsets [sequences + 1] of the innermost sequences of a ragged tensor: rows offsets[i] to offsets[i + 1] - 1.
inline const int64_t* innermost(const tn_tensor& tensor) {
  return static_cast<const tn_ragged*>(tensor.part)->offsets[0];
}

}  // namespace tenon::kernels

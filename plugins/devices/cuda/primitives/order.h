// Text: the order of floats in sorts. SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tenon::cuda {

inline constexpr const char* kOrderText = R"cuda(
// NaN comes last either way.
template <bool kDescending> __device__ bool is_before(E a, E b) {
  if (a != a || b != b) return a == a;
  return kDescending ? a > b : a < b;
}
)cuda";

}  // namespace tenon::cuda

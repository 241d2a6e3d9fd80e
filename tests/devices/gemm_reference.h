// Products as plain sums in fp64. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/builder.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace tenon_tests {

// The nearest bfloat16 number, of two that are as near the even one: 8 significant bits. For normal numbers.
inline double to_bfloat16(float number) {
  int exponent = 0;
  const double fraction = std::frexp(static_cast<double>(number), &exponent);
  return std::ldexp(std::nearbyint(fraction * 256), exponent - 8);
}

// Returns op(a) op(b), [batch, m, n]. op(a) is [batch, m, k] and op(b) [batch, k, n]; op transposes as in `flags`.
inline std::vector<double> plain_product(int64_t batch, int64_t m, int64_t n, int64_t k, uint32_t flags,
                                         const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> result;
  for (int64_t s = 0; s < batch; ++s)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < k; ++l) {
          const int64_t at = s * m * k + ((flags & TN_TRANSPOSE_A) != 0 ? l * m + i : i * k + l);
          const int64_t bt = s * k * n + ((flags & TN_TRANSPOSE_B) != 0 ? j * k + l : l * n + j);
          sum += a[static_cast<size_t>(at)] * b[static_cast<size_t>(bt)];
        }
        result.push_back(sum);
      }
  return result;
}

}  // namespace tenon_tests

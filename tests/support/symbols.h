// Values of symbols, as tn_execution has them. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/tensor.h>

#include <cstdint>
#include <vector>

namespace tenon_tests {

// Returns the values by symbol. sizes: 0, the samples, then those of TN_SYMBOL_FIRST_RAGGED and above; the symbols
// between, which are not given out, get 0.
inline std::vector<int64_t> symbol_values(std::vector<int64_t> sizes) {
  constexpr size_t kGiven = TN_SYMBOL_SAMPLES + 1;
  if (sizes.size() > kGiven) sizes.insert(sizes.begin() + kGiven, TN_SYMBOL_FIRST_RAGGED - kGiven, 0);
  return sizes;
}

// A dimension as hosts give it to prepare: with its bound.
inline tn_dim bounded_symbol(int32_t symbol, int64_t bound) {
  tn_dim dim = tn_dim_symbol(symbol);
  dim.bound = bound;
  return dim;
}

}  // namespace tenon_tests

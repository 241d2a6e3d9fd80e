// Sizes of workspaces as kernels of several plugins compute them. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <tenon/base.hpp>

namespace tenon::kernels {

// The bound of a dimension of an operand.
inline uint64_t bound_of(const tn_dim& dim, const char* port) {
  if (dim.bound < 0) throw tn::Failure(TN_INVALID, port, "has a dimension without a bound");
  return static_cast<uint64_t>(dim.bound);
}

// a * b, which must fit into 62 bits.
inline uint64_t product(uint64_t a, uint64_t b) {
  if (b != 0 && a > (uint64_t{1} << 62) / b) throw tn::Failure(TN_OUT_OF_MEMORY, "", "needs too large a workspace");
  return a * b;
}

}  // namespace tenon::kernels

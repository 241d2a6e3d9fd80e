// Rows of tables lie anywhere in memory, where the processor cannot foresee them. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace tenon::cpu {

constexpr int64_t kAhead = 8;  // rows between the one at hand and the one that is asked for

// Asks for the first lines of a row; the processor follows by itself in a longer one.
inline void prefetch(const void* row, int64_t bytes) {
  constexpr int64_t kLine = 64;
  constexpr int64_t kMost = 8 * kLine;
  const auto* at = static_cast<const char*>(row);
  for (int64_t i = 0; i < std::min(bytes, kMost); i += kLine) __builtin_prefetch(at + i);
}

}  // namespace tenon::cpu

// Software prefetch of table rows, whose addresses the processor cannot predict. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace tenon::cpu {

constexpr int64_t kAhead = 8;  // rows between the row in use and the row to prefetch

// Prefetches at most the first 512 bytes of a row; the processor prefetches the rest of a longer row by itself.
inline void prefetch(const void* row, int64_t bytes) {
  constexpr int64_t kLine = 64;
  constexpr int64_t kMost = 8 * kLine;
  const auto* at = static_cast<const char*>(row);
  for (int64_t i = 0; i < std::min(bytes, kMost); i += kLine) __builtin_prefetch(at + i);
}

// Prefetches memory of any length that is read soon.
inline void prefetch_all(const void* memory, int64_t bytes) {
  constexpr int64_t kLine = 64;
  const auto* at = static_cast<const char*>(memory);
  for (int64_t i = 0; i < bytes; i += kLine) __builtin_prefetch(at + i);
}

}  // namespace tenon::cpu

// Alignment and padding of parameters, gradients and updater states. SPDX-License-Identifier: Apache-2.0
//
// Every entry begins at a cache line. Parameters, gradients and updater states pad their entries alike, so that
// adjacent parameters have adjacent gradients and adjacent states.
#pragma once

#include <cstdint>

#include "core/checked.h"

namespace tenon::core {

constexpr uint64_t kCacheLine = 64;  // bytes

// Rounds up to whole cache lines. Throws TN_INVALID naming `what` on overflow.
inline uint64_t whole_lines(uint64_t bytes, const char* what = "bytes") {
  return checked_add(bytes, kCacheLine - 1, what) / kCacheLine * kCacheLine;
}

// Returns the elements from the beginning of an entry of a ParameterSet to the next entry: its own, padded to whole
// cache lines of floats.
template <typename What = const char*>
uint64_t padded_elements(uint64_t count, What what = "elements") {
  constexpr uint64_t kFloats = kCacheLine / sizeof(float);
  return checked_add(count, kFloats - 1, what) / kFloats * kFloats;
}

// Returns the alignment of an address in bytes, at most a cache line.
inline uint32_t alignment_of(const void* data) {
  const auto address = reinterpret_cast<uintptr_t>(data) | kCacheLine;
  return static_cast<uint32_t>(address & (~address + 1));
}

}  // namespace tenon::core

// Alignment and padding: what lies in memory begins at a cache line, and sets of parameters, gradients and the state of
// updaters all pad their entries alike, so that neighbours in one are neighbours in each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/checked.h"

namespace tenon {

constexpr uint64_t kCacheLine = 64;  // bytes

// Rounded up to whole lines; `what` is named when that overflows.
inline uint64_t whole_lines(uint64_t bytes, const char* what = "bytes") {
  return checked_add(bytes, kCacheLine - 1, what) / kCacheLine * kCacheLine;
}

// Elements from the begin of an entry of a ParameterSet to the next: its own, padded to whole lines of floats.
inline uint64_t padded_elements(uint64_t count, const char* what = "elements") {
  constexpr uint64_t kFloats = kCacheLine / sizeof(float);
  return checked_add(count, kFloats - 1, what) / kFloats * kFloats;
}

}  // namespace tenon

// Memory in whole cache lines. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/checked.h"

namespace tenon {

constexpr uint64_t kLine = 64;

// Rounded up to whole lines; `what` is named when that overflows.
inline uint64_t lines(uint64_t bytes, const char* what = "bytes") {
  return checked_add(bytes, kLine - 1, what) / kLine * kLine;
}

// Elements of a ParameterSet, padded to lines of floats as they lie there.
inline uint64_t padded(uint64_t floats) {
  constexpr uint64_t kFloats = kLine / sizeof(float);
  return (floats + kFloats - 1) / kFloats * kFloats;
}

}  // namespace tenon

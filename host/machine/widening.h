// Feeds of a narrower type than the data layer's: conversions that lose no value. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/array_view.h"

namespace tenon::host {

using namespace core;

// Whether every value of type `from` is a value of the other type `to`: integers of fewer bits, integers whose bits fit
// the significand of a float, float32 as float64.
[[nodiscard]] bool widens(tn_dtype from, tn_dtype to);

// Writes the elements of an array, or the rows of a ragged one, to `to` in row-major order, as elements of type
// `dtype`. Its own type must be equal to `dtype`, or widen to it.
void copy_widened(const ArrayView& from, tn_dtype dtype, std::byte* to);

}  // namespace tenon::host

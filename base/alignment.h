// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tenon::base {

// Returns the next multiple of `step` that is not below `value`.
[[nodiscard]] constexpr uint64_t round_up(uint64_t value, uint64_t step) { return (value + step - 1) / step * step; }

}  // namespace tenon::base

// The check of integers against an index limit. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "core/array_view.h"

namespace tenon::core {

struct IndexBeyond {
  int64_t element = 0;  // its number in row-major order
  int64_t value = 0;
};

// Returns the first element of an array of integers, or of the rows of a ragged one, that is not in 0 to limit - 1.
[[nodiscard]] std::optional<IndexBeyond> first_beyond(const ArrayView& array, int64_t limit);

}  // namespace tenon::core

// Terms of sums in memory of the host. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/base.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tenon::host {

// Rows of a row-sparse gradient: ids without duplicates, and the values of each, one behind the other.
struct RowTerms {
  std::vector<int64_t> ids;
  std::vector<std::byte> values;
};

// Adds the rows of `from`, numbers of a compute type, to those of the same ids; those of other ids come behind, as they
// are.
void add_rows(tn_dtype compute, RowTerms& to, const RowTerms& from, uint64_t row_bytes);

}  // namespace tenon::host

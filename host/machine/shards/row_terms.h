// Terms of sums in memory of the host. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/base.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tenon::host {

// Rows of a row-sparse gradient: ids without duplicates, and the values of each, one behind the other.
struct RowTerms {
  std::vector<int64_t> ids;
  std::span<const std::byte> values;  // in `memory`, or borrowed, such as of a message
  std::vector<std::byte> memory;

  // Returns room of its own for values.
  [[nodiscard]] std::byte* allocate(uint64_t bytes) {
    memory.resize(bytes);
    values = memory;
    return memory.data();
  }

  RowTerms() = default;
  RowTerms(RowTerms&&) = default;
  RowTerms& operator=(RowTerms&&) = default;
  ~RowTerms() = default;
  RowTerms(const RowTerms&) = delete;
  RowTerms& operator=(const RowTerms&) = delete;
};

// Adds the rows of `from`, numbers of a compute type, to those of the same ids; those of other ids come behind, as they
// are. May leave anything in `from`.
void add_rows(tn_dtype compute, RowTerms& to, RowTerms& from, uint64_t row_bytes);

}  // namespace tenon::host

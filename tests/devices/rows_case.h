// A TN_ROW_SPARSE tensor between guards.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/devices/prepared_call.h"

namespace tenon_tests {

struct Rows {
  Rows(tn_dtype dtype, int64_t most, int64_t width)
      : capacity(most),
        row_width(width),
        type(dtype),
        values(static_cast<size_t>(most * width * tn_dtype_bytes(dtype))),
        ids(static_cast<size_t>(most) * sizeof(int64_t)),
        part{most, &count, &ids} {}
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  void put(const std::vector<double>& numbers, const std::vector<int64_t>& of) {
    count = static_cast<int64_t>(of.size());
    for (size_t i = 0; i < of.size(); ++i)
      write_element(TN_I64, ids.data() + i * sizeof(int64_t), static_cast<double>(of[i]));
    for (size_t i = 0; i < numbers.size(); ++i)
      write_element(type, values.data() + i * tn_dtype_bytes(type), numbers[i]);
  }
  [[nodiscard]] std::vector<int64_t> used_ids() const {
    const auto* first = reinterpret_cast<const int64_t*>(ids.data());
    return {first, first + count};
  }
  [[nodiscard]] std::vector<double> used_values() const {
    std::vector<double> all = read_all(type, values);
    all.resize(static_cast<size_t>(count * row_width));
    return all;
  }
  [[nodiscard]] bool intact() const { return values.intact() && ids.intact(); }

  int64_t capacity, row_width;
  tn_dtype type;
  int64_t count = 0;
  Guarded values, ids;
  RowsPart part;
};

}  // namespace tenon_tests

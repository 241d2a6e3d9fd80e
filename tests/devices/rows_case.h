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

inline std::vector<int64_t> random_ids(size_t count, int64_t height, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int64_t> ids(count);
  for (int64_t& id : ids) id = static_cast<int64_t>(random() % static_cast<uint64_t>(height));
  return ids;
}

// Checks the rows that run(case, rows, request, workers) leaves after the first case with WRITE and the others with
// ADD.
template <typename Case, typename Run>
void check_rows(DeviceUnderTest& device, const std::vector<Case>& cases, const std::vector<int64_t>& ids,
                const std::vector<double>& values, Run run) {
  for (const int32_t workers : device.workers({1, 2, 3, 8})) {
    Rows rows(cases[0].dtype, static_cast<int64_t>(ids.size()), cases[0].width);
    rows.count = 77;  // WRITE ignores the rows before the call
    for (size_t i = 0; i < cases.size(); ++i)
      ASSERT_EQ(run(cases[i], rows, i == 0 ? TN_REQUEST_WRITE : TN_REQUEST_ADD, workers), TN_OK) << device.message;
    ASSERT_EQ(rows.used_ids(), ids) << workers << " workers";
    ASSERT_EQ(rows.used_values(), values) << workers << " workers";
    ASSERT_TRUE(rows.intact());
  }
}

}  // namespace tenon_tests

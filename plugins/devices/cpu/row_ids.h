// The ids by which calls read rows of a table. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device.h>

#include <cstdint>

namespace tenon::cpu {

struct RowIds {
  const void* ids = nullptr;  // [count]
  tn_dtype type = 0;          // TN_I32 or TN_I64
  int64_t count = 0, height = 0;

  int64_t operator[](int64_t position) const {
    return type == TN_I32 ? static_cast<const int32_t*>(ids)[position] : static_cast<const int64_t*>(ids)[position];
  }
  [[nodiscard]] bool has(int64_t id) const { return id >= 0 && id < height; }
};

// Reports the id at a position as outside [0, height).
tn_status report_wrong_id(const tn_errors* errors, const RowIds& ids, int64_t position);

// Checks all ids, on several threads if they are many; reports the first one outside [0, height).
tn_status check_ids(const tn_execution& execution, const RowIds& ids);

}  // namespace tenon::cpu

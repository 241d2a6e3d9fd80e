// SPDX-License-Identifier: Apache-2.0
#include "row_ids.h"

#include <algorithm>
#include <atomic>
#include <cstdio>

namespace tenon::cpu {

namespace {

constexpr int64_t kIdsPerTask = 16384;

struct Check {
  const RowIds* ids;
  std::atomic<int64_t> first_wrong;  // position of the first id outside [0, height); INT64_MAX if none
};

// Task `index`: checks ids [index * kIdsPerTask, (index + 1) * kIdsPerTask) and lowers first_wrong to the position of
// the first wrong one.
void check_part(void* argument, int64_t index, int32_t) {
  Check& check = *static_cast<Check*>(argument);
  const RowIds& ids = *check.ids;
  const int64_t last = std::min((index + 1) * kIdsPerTask, ids.count);
  for (int64_t i = index * kIdsPerTask; i < last; ++i) {
    if (ids.has(ids[i])) continue;
    int64_t known = check.first_wrong.load();
    while (i < known && !check.first_wrong.compare_exchange_weak(known, i)) {
    }
    return;
  }
}

}  // namespace

tn_status report_wrong_id(const tn_errors* errors, const RowIds& ids, int64_t position) {
  char message[128];
  std::snprintf(message, sizeof message, "id %lld at position %lld is outside the table of %lld rows",
                static_cast<long long>(ids[position]), static_cast<long long>(position),
                static_cast<long long>(ids.height));
  return tn_fail(errors, TN_BAD_DATA, "ids", message);
}

tn_status check_ids(const tn_execution& execution, const RowIds& ids) {
  Check check = {&ids, INT64_MAX};
  execution.parallel->for_each(execution.parallel->self, (ids.count + kIdsPerTask - 1) / kIdsPerTask, &check_part,
                               &check);
  return check.first_wrong == INT64_MAX ? TN_OK : report_wrong_id(execution.errors, ids, check.first_wrong);
}

}  // namespace tenon::cpu

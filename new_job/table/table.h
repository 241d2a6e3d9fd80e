// A table, as far as a job depends on it. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "new_job/request.h"
#include "new_job/table/column.h"

namespace tenon::new_job {

struct Table {
  Form form;
  int64_t records = 0;
  std::vector<ColumnSummary> columns;
};

// Reads all records of the files once, and the first ones twice. Throws cli::Failure.
[[nodiscard]] Table table_of(const Request& request);

}  // namespace tenon::new_job

// What a model of a table predicts. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "new_job/table/table.h"

namespace tenon::new_job {

struct Target {
  const ColumnSummary* column = nullptr;
  bool classes = false;                                 // else a quantity
  std::vector<std::pair<std::string, int64_t>> counts;  // of each class its rows, from frequent to rare
  int64_t rows = 0;                                     // with a target

  [[nodiscard]] size_t count() const { return counts.size(); }
};

// Decides whether the target is classes or a quantity. Throws cli::Failure if neither can be learned, and if the user
// has to say which it is.
[[nodiscard]] Target target_of(const Table& table, const Request& request);

}  // namespace tenon::new_job

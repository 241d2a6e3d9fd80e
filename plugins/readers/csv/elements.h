// The names that the elements of a vector have in a model: those of their columns, with what the reader derived from
// its data. SPDX-License-Identifier: Apache-2.0
//
//   age                   the column
//   age (missing 37.5)    the column, with the number that stands for missing values
//   when (month)          a part of a date
//   age (missing)         1 where the value of the column is missing, else 0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "columns.h"

namespace tenon::csv {

// fills: by column of the slot. columns: their names.
[[nodiscard]] std::vector<std::string> element_names(const SlotColumns& slot, const std::vector<std::string>& columns,
                                                     const std::vector<double>& fills);

struct Elements {
  std::vector<std::string> columns;
  std::vector<double> fills;  // if they are derived
  bool fit = false;           // the names are of a slot with these options; else columns has all of them
};
// Returns what the names of a model mean for a slot with the options of `slot`.
[[nodiscard]] Elements elements_of(const std::vector<std::string_view>& names, const SlotColumns& slot);

}  // namespace tenon::csv

// The times of rows that follow one another: the attributes "order_by" and "step". SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <tenon/reader.hpp>
#include <vector>

#include "columns.h"

namespace tenon::csv {

class RowTime {
 public:
  static void describe(tn::ReaderDescription& d);
  // names: of the columns. Throws tn::Failure on an attribute.
  RowTime(const std::vector<std::string>& names, const tn::ReaderOpen& open);

  // Whether rows have times; else they are in the order of the data.
  [[nodiscard]] bool is_used() const { return column_ >= 0; }
  // The time of a row with these texts by column: seconds of a date, or a number. 0 if rows have none. Throws
  // BadRecord.
  [[nodiscard]] double time(const std::vector<std::string>& texts) const;
  // The number of steps from a row to the next one, at least 1. Without a step each row is one. Throws BadRecord if
  // they are not whole.
  [[nodiscard]] int64_t steps(double from, double to) const;

 private:
  int64_t column_ = -1;
  std::string name_, step_text_;
  Type type_;
  double step_ = 0;  // 0: none
};

}  // namespace tenon::csv

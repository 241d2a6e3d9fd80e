// Which form of dates a column has. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dates.h"

namespace tenon::new_job {

// Rules out forms of dates, text by text.
class DateForms {
 public:
  void see(const std::string& text);
  // Whether all texts were dates of one form.
  [[nodiscard]] bool any() const { return possible_ != 0 && seen_ > 0; }
  // Returns the type of the reader csv, such as "date(%d.%m.%Y)".
  [[nodiscard]] std::string type() const;
  // Returns the parts that differ: of dates of one year not the year, of dates without a time not the hour.
  [[nodiscard]] std::vector<std::string> parts() const;
  // Whether the first number may be the day or the month.
  [[nodiscard]] bool is_ambiguous() const;

 private:
  [[nodiscard]] size_t form() const;  // the first possible one

  uint64_t possible_ = ~uint64_t{0};
  int64_t seen_ = 0, first_year_ = 0, last_year_ = 0;
  bool has_time_ = false;
};

}  // namespace tenon::new_job

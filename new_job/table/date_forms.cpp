// SPDX-License-Identifier: Apache-2.0
#include "new_job/table/date_forms.h"

#include <algorithm>
#include <bit>
#include <iterator>

namespace tenon::new_job {

namespace {

// Of two forms that both fit, the first is taken.
constexpr const char* kForms[] = {"",
                                  "%d.%m.%Y",
                                  "%d.%m.%y",
                                  "%m/%d/%Y",
                                  "%d/%m/%Y",
                                  "%m/%d/%y",
                                  "%d/%m/%y",
                                  "%Y/%m/%d",
                                  "%d-%m-%Y",
                                  "%m-%d-%Y",
                                  "%d-%b-%Y",
                                  "%d-%b-%y",
                                  "%d %b %Y",
                                  "%b %d, %Y",
                                  "%b %d %Y",
                                  "%d.%m.%Y %H:%M",
                                  "%d.%m.%Y %H:%M:%S",
                                  "%m/%d/%Y %H:%M",
                                  "%d/%m/%Y %H:%M",
                                  "%m/%d/%Y %H:%M:%S",
                                  "%d/%m/%Y %H:%M:%S",
                                  "%m/%d/%Y %I:%M:%S %p",
                                  "%Y/%m/%d %H:%M:%S"};
constexpr size_t kCount = std::size(kForms);

}  // namespace

void DateForms::see(const std::string& text) {
  if (possible_ == 0) return;
  possible_ &= (uint64_t{1} << kCount) - 1;
  constexpr size_t kLongest = 40;
  std::optional<csv::Date> date;
  for (size_t i = 0; i < kCount && possible_ != 0; ++i) {
    if ((possible_ >> i & 1) == 0) continue;
    const std::optional<csv::Date> read = text.size() > kLongest ? std::nullopt : csv::read_date(text, kForms[i]);
    if (!read) possible_ &= ~(uint64_t{1} << i);
    if (read && !date) date = read;
  }
  if (!date) return;
  first_year_ = seen_ == 0 ? date->year : std::min(first_year_, date->year);
  last_year_ = seen_ == 0 ? date->year : std::max(last_year_, date->year);
  has_time_ = has_time_ || date->hour != 0 || date->minute != 0;
  ++seen_;
}

size_t DateForms::form() const { return static_cast<size_t>(std::countr_zero(possible_)); }

std::string DateForms::type() const {
  const std::string format = kForms[form()];
  return format.empty() ? "date" : "date(" + format + ")";
}

std::vector<std::string> DateForms::parts() const {
  std::vector<std::string> parts = {"month", "day", "weekday"};
  if (first_year_ != last_year_) parts.insert(parts.begin(), "year");
  if (has_time_) parts.insert(parts.end(), {"hour", "minute"});
  return parts;
}

bool DateForms::is_ambiguous() const { return std::popcount(possible_) > 1; }

}  // namespace tenon::new_job

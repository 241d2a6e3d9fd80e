// Dates and times as numbers, by a format. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tenon::csv {

enum class DatePart { kYear, kMonth, kDay, kWeekday, kYearday, kHour, kMinute, kSecond };

// The part called `name`; none if there is no such part.
[[nodiscard]] std::optional<DatePart> date_part(std::string_view name);
[[nodiscard]] const char* name_of(DatePart part);

// A date and time as it is written, in the Gregorian calendar.
struct Date {
  int64_t year = 1970;
  int64_t month = 1, day = 1, hour = 0, minute = 0;
  double second = 0;
  int64_t offset = 0;  // of its time zone from UTC, in seconds

  // Seconds since 1970-01-01 00:00 UTC.
  [[nodiscard]] double epoch() const;
  // Months and days count from 1, weekdays from 0 (Monday), days of the year from 1.
  [[nodiscard]] double part(DatePart part) const;
};

// Why `format` is no format of dates; "" if it is one. Formats have %Y %y %m %b %d %j %H %I %p %M %S %f %z %%, as
// strptime has them; other characters stand for themselves, and a space for any spaces. "": ISO 8601, a date with or
// without a time.
[[nodiscard]] std::string format_fault(std::string_view format);

// Reads a date that is the whole text. None if it is another text, or a day that does not exist.
[[nodiscard]] std::optional<Date> read_date(std::string_view text, std::string_view format);

}  // namespace tenon::csv

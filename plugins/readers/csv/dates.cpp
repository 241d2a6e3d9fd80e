// Reads dates by a format. SPDX-License-Identifier: Apache-2.0
#include "dates.h"

#include <algorithm>
#include <cctype>
#include <iterator>

namespace tenon::csv {

namespace {

constexpr const char* kPartNames[] = {"year", "month", "day", "weekday", "yearday", "hour", "minute", "second"};
constexpr const char* kMonthNames[] = {"january", "february", "march",     "april",   "may",      "june",
                                       "july",    "august",   "september", "october", "november", "december"};
constexpr std::string_view kFields = "YymbdjHIpMSfz%";

// Days from 1970-01-01 to a day of the Gregorian calendar (H. Hinnant, "chrono-compatible low-level date algorithms").
int64_t days_from_civil(int64_t year, int64_t month, int64_t day) {
  year -= month <= 2 ? 1 : 0;
  const int64_t era = (year >= 0 ? year : year - 399) / 400;
  const int64_t of_era = year - era * 400;
  const int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

int64_t days_of_month(int64_t year, int64_t month) {
  return month == 12 ? 31 : days_from_civil(year, month + 1, 1) - days_from_civil(year, month, 1);
}

// Reads the fields of a date one after the other. Each function returns whether the text has the field.
class DateText {
 public:
  explicit DateText(std::string_view text) : text_(text) {}

  bool field(char kind) {
    switch (kind) {
      case 'Y':
        return number(4, 4, 0, 9999, &date_.year);
      case 'y':
        if (!number(2, 2, 0, 99, &date_.year)) return false;
        date_.year += date_.year < 69 ? 2000 : 1900;
        return true;
      case 'm':
        return number(1, 2, 1, 12, &date_.month);
      case 'b':
        return month_name();
      case 'd':
        return number(1, 2, 1, 31, &date_.day);
      case 'j':
        return number(1, 3, 1, 366, &yearday_);
      case 'H':
        return number(1, 2, 0, 23, &date_.hour);
      case 'I':
        return number(1, 2, 1, 12, &date_.hour);
      case 'p':
        return half_of_day();
      case 'M':
        return number(1, 2, 0, 59, &date_.minute);
      case 'S':
        return second();
      case 'f':
        return fraction();
      case 'z':
        return zone();
      default:
        return accept(kind);
    }
  }
  bool accept(char expected) {
    if (at_ == text_.size() || text_[at_] != expected) return false;
    ++at_;
    return true;
  }
  void spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  [[nodiscard]] bool done() const { return at_ == text_.size(); }
  // The date, if its day exists.
  std::optional<Date> date() {
    if (half_ != 0) date_.hour = date_.hour % 12 + (half_ == 'p' ? 12 : 0);
    if (yearday_ > 0) {
      if (yearday_ > days_from_civil(date_.year + 1, 1, 1) - days_from_civil(date_.year, 1, 1)) return {};
      for (date_.month = 1; yearday_ > days_of_month(date_.year, date_.month); ++date_.month)
        yearday_ -= days_of_month(date_.year, date_.month);
      date_.day = yearday_;
    }
    if (date_.day > days_of_month(date_.year, date_.month)) return {};
    return date_;
  }

 private:
  // A whole number of `least` to `most` digits.
  bool number(size_t least, size_t most, int64_t low, int64_t high, int64_t* value) {
    const size_t begin = at_;
    for (*value = 0; at_ < text_.size() && at_ - begin < most && is_digit(text_[at_]); ++at_)
      *value = *value * 10 + (text_[at_] - '0');
    return at_ - begin >= least && *value >= low && *value <= high;
  }
  bool second() {
    int64_t seconds = 0;
    if (!number(1, 2, 0, 59, &seconds)) return false;
    date_.second = static_cast<double>(seconds);
    return true;
  }
  bool fraction() {
    double unit = 0.1;
    const size_t begin = at_;
    for (; at_ < text_.size() && at_ - begin < 9 && is_digit(text_[at_]); ++at_) {
      date_.second += unit * (text_[at_] - '0');
      unit /= 10;
    }
    return at_ > begin;
  }
  // A name, or its first three letters.
  bool month_name() {
    const std::string word = letters();
    for (size_t month = 0; month < std::size(kMonthNames); ++month) {
      const std::string_view name = kMonthNames[month];
      if (word != name && word != name.substr(0, 3)) continue;
      date_.month = static_cast<int64_t>(month) + 1;
      return true;
    }
    return false;
  }
  bool half_of_day() {
    const std::string word = letters();
    half_ = word.empty() ? '\0' : word[0];
    return word == "am" || word == "pm";
  }
  // "Z", "+02", "+0200" or "+02:00".
  bool zone() {
    if (accept('Z')) return true;
    const bool west = accept('-');
    int64_t hours = 0, minutes = 0;
    if ((!west && !accept('+')) || !number(2, 2, 0, 23, &hours)) return false;
    const bool colon = accept(':');
    if ((colon || (!done() && is_digit(text_[at_]))) && !number(2, 2, 0, 59, &minutes)) return false;
    date_.offset = (west ? -1 : 1) * (hours * 3600 + minutes * 60);
    return true;
  }
  std::string letters() {
    std::string word;
    for (; at_ < text_.size() && std::isalpha(static_cast<unsigned char>(text_[at_])) != 0; ++at_)
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(text_[at_])));
    return word;
  }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  std::string_view text_;
  size_t at_ = 0;
  Date date_;
  int64_t yearday_ = 0;  // 0: none
  char half_ = '\0';     // 'a' or 'p' of the day
};

std::optional<Date> read_iso(std::string_view text) {
  DateText from(text);
  if (!from.field('Y') || !from.accept('-') || !from.field('m') || !from.accept('-') || !from.field('d')) return {};
  if (from.done()) return from.date();
  if (!from.accept('T') && !from.accept(' ')) return {};
  if (!from.field('H') || !from.accept(':') || !from.field('M')) return {};
  if (from.accept(':') && !from.field('S')) return {};
  if (from.accept('.') && !from.field('f')) return {};
  if (!from.done() && !from.field('z')) return {};
  return from.done() ? from.date() : std::nullopt;
}

}  // namespace

std::optional<DatePart> date_part(std::string_view name) {
  const auto* const at = std::find(std::begin(kPartNames), std::end(kPartNames), name);
  if (at == std::end(kPartNames)) return {};
  return static_cast<DatePart>(at - std::begin(kPartNames));
}

const char* name_of(DatePart part) { return kPartNames[static_cast<size_t>(part)]; }

double Date::epoch() const {
  const int64_t seconds = (days_from_civil(year, month, day) * 24 + hour) * 3600 + minute * 60 - offset;
  return static_cast<double>(seconds) + second;
}

double Date::part(DatePart part) const {
  const int64_t days = days_from_civil(year, month, day);
  switch (part) {
    case DatePart::kYear:
      return static_cast<double>(year);
    case DatePart::kMonth:
      return static_cast<double>(month);
    case DatePart::kDay:
      return static_cast<double>(day);
    case DatePart::kWeekday:
      return static_cast<double>(((days + 3) % 7 + 7) % 7);  // 1970-01-01 was a Thursday
    case DatePart::kYearday:
      return static_cast<double>(days - days_from_civil(year, 1, 1) + 1);
    case DatePart::kHour:
      return static_cast<double>(hour);
    case DatePart::kMinute:
      return static_cast<double>(minute);
    default:
      return second;
  }
}

std::string format_fault(std::string_view format) {
  bool day = format.empty();
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') continue;
    if (++i == format.size() || kFields.find(format[i]) == std::string_view::npos)
      return "unknown field \"%" + std::string(format.substr(i, 1)) +
             "\" of the format; known: %Y %y %m %b %d %j %H %I %p %M %S %f %z %%";
    day = day || format[i] != '%';
  }
  return day ? "" : "the format has no fields, such as %Y-%m-%d";
}

std::optional<Date> read_date(std::string_view text, std::string_view format) {
  if (format.empty()) return read_iso(text);
  DateText from(text);
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] == ' ')
      from.spaces();
    else if (!(format[i] == '%' ? from.field(format[++i]) : from.accept(format[i])))
      return {};
  }
  return from.done() ? from.date() : std::nullopt;
}

}  // namespace tenon::csv

// Reads times, and counts the steps between them. SPDX-License-Identifier: Apache-2.0
#include "row_time.h"

#include <cmath>
#include <optional>
#include <string_view>

#include "delimiter.h"
#include "file.h"
#include "number.h"

namespace tenon::csv {

namespace {

struct Unit {
  std::string_view name;
  double seconds;
};
constexpr Unit kUnits[] = {{"", 1}, {"s", 1}, {"min", 60}, {"h", 3600}, {"d", 86400}, {"w", 604800}};

// Returns a step such as "15min"; 0 if the text is none.
double step_of(const std::string& text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const char* const stop = files::read_float(text.data(), end, &number);
  if (stop == nullptr || !std::isfinite(number) || number <= 0) return 0;
  for (const Unit& unit : kUnits)
    if (std::string_view(stop, static_cast<size_t>(end - stop)) == unit.name) return number * unit.seconds;
  return 0;
}

}  // namespace

void RowTime::describe(tn::ReaderDescription& d) {
  d.attribute(tn::string_attribute("order_by")
                  .doc("the column of the time of rows, by which they are sorted, such as \"when\" or \"when: "
                       "date(%d.%m.%Y)\"; without "
                       "it they are in the order of the data"));
  d.attribute(tn::string_attribute("step").doc(
      "the time between two rows, in s, min, h, d or w, such as \"15min\", or a number; rows that are farther apart "
      "have gaps between them; without it there are none"));
}

RowTime::RowTime(const std::vector<std::string>& names, const tn::ReaderOpen& open) {
  const tn::Attributes attributes = open.attributes();
  if (attributes.has("step")) {
    step_text_ = attributes.text("step");
    step_ = step_of(step_text_);
    if (step_ == 0)
      throw tn::Failure(
          TN_INVALID, "step",
          "expected a number above 0 and s, min, h, d or w, such as \"15min\", got " + files::quoted(step_text_));
    if (!attributes.has("order_by")) throw tn::Failure(TN_INVALID, "step", "needs the attribute order_by");
  }
  if (!attributes.has("order_by")) return;
  try {
    const std::vector<SlotColumns> slots =
        slot_columns({std::string("order_by = ") + attributes.text("order_by")}, names, open, /*all=*/true);
    const SlotColumns& time = slots.front();
    type_ = time.type;
    const bool number = type_.kind == Kind::kInferred || type_.kind == Kind::kFloat || type_.kind == Kind::kInteger;
    if (time.columns.size() != 1 || (!number && type_.kind != Kind::kDate) || !type_.separator.empty())
      throw tn::Failure(TN_INVALID, "order_by", "expected one column, of numbers or dates");
    column_ = static_cast<int64_t>(time.columns.front());
    name_ = names[time.columns.front()];
  } catch (const tn::Failure& failure) {
    throw tn::Failure(failure.code(), "order_by", failure.what());
  }
}

double RowTime::time(const std::vector<std::string>& texts) const {
  if (!is_used()) return 0;
  const std::string& text = texts[static_cast<size_t>(column_)];
  double number = 0;
  const char* const end = text.data() + text.size();
  if (type_.kind != Kind::kDate && !text.empty() && files::read_float(text.data(), end, &number) == end &&
      std::isfinite(number))
    return number;
  const std::optional<Date> date = read_date(text, type_.format);
  if (!date) throw BadRecord{"column " + files::quoted(name_) + ": expected a time, got " + files::quoted(text)};
  return date->epoch();
}

int64_t RowTime::steps(double from, double to) const {
  if (step_ == 0) return 1;
  const double steps = (to - from) / step_, whole = std::round(steps);
  const std::string column = "column " + files::quoted(name_) + ": ";
  constexpr double kTolerance = 1e-3;  // of a step
  constexpr double kMost = 1e15;       // whole numbers up to it are exact
  if (steps <= kTolerance) throw BadRecord{column + "another row of its group has this time"};
  if (std::fabs(steps - whole) > kTolerance || whole > kMost)
    throw BadRecord{column + "the time since the row before is not a number of steps of " + files::quoted(step_text_)};
  return static_cast<int64_t>(whole);
}

}  // namespace tenon::csv

// Names of elements, and what they mean. SPDX-License-Identifier: Apache-2.0
#include "elements.h"

#include <charconv>

#include "number.h"

namespace tenon::csv {

namespace {

constexpr std::string_view kMissing = " (missing", kFill = " (missing ";

// Removes the end of a name. False if it has another end.
bool remove_end(std::string& name, const std::string& end) {
  if (name.size() <= end.size() || name.compare(name.size() - end.size(), end.size(), end) != 0) return false;
  name.resize(name.size() - end.size());
  return true;
}

// Removes " (missing NUMBER)".
bool remove_fill(std::string& name, double* fill) {
  const size_t at = name.rfind(kFill);
  if (at == std::string::npos || at == 0 || name.back() != ')') return false;
  const char *const from = name.data() + at + kFill.size(), *const end = name.data() + name.size() - 1;
  if (files::read_float(from, end, fill) != end) return false;
  name.resize(at);
  return true;
}

std::string part_text(DatePart part) { return std::string(" (") + name_of(part) + ")"; }

}  // namespace

std::vector<std::string> element_names(const SlotColumns& slot, const std::vector<std::string>& columns,
                                       const std::vector<double>& fills) {
  std::vector<std::string> names;
  for (size_t i = 0; i < columns.size(); ++i) {
    std::string name = columns[i];
    if (slot.treatment.is_derived()) {
      char number[32];
      const char* const end = std::to_chars(number, number + sizeof number, fills[i]).ptr;
      name.append(kFill).append(number, static_cast<size_t>(end - number)).append(")");
    }
    for (const DatePart part : slot.type.parts) names.push_back(name + part_text(part));
    if (slot.type.parts.empty()) names.push_back(name);
  }
  if (slot.treatment.indicator)
    for (const std::string& column : columns) names.push_back(std::string(column).append(kMissing).append(")"));
  return names;
}

Elements elements_of(const std::vector<std::string_view>& names, const SlotColumns& slot) {
  const std::vector<std::string> all(names.begin(), names.end());
  const size_t of_column = slot.type.values() + (slot.treatment.indicator ? 1 : 0);
  Elements result;
  Elements others = {all, {}, false};
  if (all.size() % of_column != 0) return others;
  const size_t count = all.size() / of_column, values = slot.type.values();
  for (size_t i = 0; i < count; ++i) {
    std::string name = all[i * values];
    double fill = 0;
    for (size_t part = 0; part < slot.type.parts.size(); ++part) {
      std::string element = all[i * values + part];
      if (!remove_end(element, part_text(slot.type.parts[part]))) return others;
      if (part == 0) name = element;
    }
    if (slot.treatment.is_derived() && !remove_fill(name, &fill)) return others;
    if (slot.treatment.is_derived()) result.fills.push_back(fill);
    if (slot.treatment.indicator && all[count * values + i] != name + std::string(kMissing) + ")") return others;
    result.columns.push_back(std::move(name));
  }
  result.fit = true;
  return result;
}

}  // namespace tenon::csv

// SPDX-License-Identifier: Apache-2.0
#include "host/training/updater_attributes.h"

#include <algorithm>
#include <cmath>

#include "base/nearest.h"
#include "core/error.h"

namespace tenon::host {

namespace {

// Returns the list that a value is, or is the only entry of; an empty list for other values.
template <typename Entry>
std::vector<Entry> list_of(const Value& value) {
  if (const auto* list = std::get_if<std::vector<Entry>>(&value)) return *list;
  if (const auto* one = std::get_if<Entry>(&value)) return {*one};
  return {};
}

std::optional<double> number_of(const Value& value) {
  if (const auto* f = std::get_if<double>(&value)) return *f;
  if (const auto* i = std::get_if<int64_t>(&value)) return static_cast<double>(*i);
  return std::nullopt;
}

}  // namespace

std::optional<Value> UpdaterAttributes::take(const std::string& key) {
  const auto found = attributes_.find(prefix_ + key);
  if (found == attributes_.end()) return std::nullopt;
  return std::move(attributes_.extract(found).mapped());
}

Value UpdaterAttributes::required(const std::string& key) {
  if (!has(key)) fail(TN_INVALID, SubjectName{name(key)}, "attribute \"", name(key), "\" is missing");
  return *take(key);
}

void UpdaterAttributes::bad(const std::string& key, const std::string& message) const {
  fail(TN_INVALID, SubjectName{name(key)}, "attribute \"", name(key), "\": ", message);
}

double UpdaterAttributes::number(const std::string& key, Range range, std::optional<double> otherwise) {
  if (otherwise && !has(key)) return *otherwise;
  const Value value = required(key);
  const double number = number_of(value).value_or(std::numeric_limits<double>::quiet_NaN());
  if (std::isfinite(number) && range.least <= number && number <= range.most) return number;
  if (std::isfinite(range.most))
    bad(key, text("expected a number from ", range.least, " to ", range.most, ", got ", shown(value)));
  bad(key, text("expected a number of at least ", range.least, ", got ", shown(value)));
}

int64_t UpdaterAttributes::whole(const std::string& key, int64_t least, std::optional<int64_t> otherwise) {
  if (otherwise && !has(key)) return *otherwise;
  const Value value = required(key);
  if (const auto* number = std::get_if<int64_t>(&value); number != nullptr && *number >= least) return *number;
  bad(key, text("expected an integer of at least ", least, ", got ", shown(value)));
}

bool UpdaterAttributes::flag(const std::string& key, bool otherwise) {
  const Value value = take(key).value_or(otherwise);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  bad(key, text("expected true or false, got ", shown(value)));
}

std::string UpdaterAttributes::choice(const std::string& key, std::span<const char* const> choices,
                                      const char* otherwise) {
  const Value value = take(key).value_or(std::string(otherwise));
  const auto* given = std::get_if<std::string>(&value);
  const std::vector<std::string> known(choices.begin(), choices.end());
  if (given != nullptr && std::find(known.begin(), known.end(), *given) != known.end()) return *given;
  bad(key, text("unknown ", key, " ", shown(value), base::suggestion(given == nullptr ? "" : *given, known)));
}

std::vector<int64_t> UpdaterAttributes::wholes(const std::string& key) {
  const Value value = required(key);
  std::vector<int64_t> list = list_of<int64_t>(value);
  if (list.empty()) bad(key, text("expected a list of integers, got ", shown(value)));
  return list;
}

std::vector<double> UpdaterAttributes::numbers(const std::string& key, double least) {
  const Value value = required(key);
  std::vector<double> list = list_of<double>(value);
  for (const int64_t entry : list_of<int64_t>(value)) list.push_back(static_cast<double>(entry));
  const auto wrong = [least](double entry) { return !std::isfinite(entry) || entry < least; };
  if (list.empty() || std::any_of(list.begin(), list.end(), wrong))
    bad(key, text("expected a list of numbers of at least ", least, ", got ", shown(value)));
  return list;
}

std::vector<std::string> UpdaterAttributes::texts(const std::string& key) {
  const Value value = required(key);
  std::vector<std::string> list = list_of<std::string>(value);
  if (list.empty()) bad(key, text("expected a list of names, got ", shown(value)));
  return list;
}

std::vector<std::string> UpdaterAttributes::rest() const {
  std::vector<std::string> keys;
  for (auto each = attributes_.lower_bound(prefix_); each != attributes_.end() && each->first.starts_with(prefix_);
       ++each)
    keys.push_back(each->first.substr(prefix_.size()));
  return keys;
}

}  // namespace tenon::host

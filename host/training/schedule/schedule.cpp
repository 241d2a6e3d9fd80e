// SPDX-License-Identifier: Apache-2.0
#include "host/training/schedule/schedule.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "core/error.h"

namespace tenon::host {

namespace {

constexpr const char* kPrefix = "schedule.";
constexpr const char* kType = "type";
constexpr const char* kWarmUp = "warm_up";

using Kinds = std::vector<ScheduleKind>;

Kinds simple_kinds() {
  Kinds kinds(decays().begin(), decays().end());
  kinds.insert(kinds.end(), cycles().begin(), cycles().end());
  return kinds;
}

Kinds all_kinds() {
  Kinds kinds = simple_kinds();
  kinds.insert(kinds.end(), compositions().begin(), compositions().end());
  return kinds;
}

std::vector<std::string> keys_of(const ScheduleKind& kind) {
  std::vector<std::string> keys;
  for (const char* key : kind.keys)
    if (key != nullptr) keys.emplace_back(key);
  keys.emplace_back(kWarmUp);
  return keys;
}

ScheduleKind take_kind(UpdaterAttributes& reader, const Kinds& kinds) {
  std::vector<const char*> names;
  for (const ScheduleKind& kind : kinds) names.push_back(kind.name);
  const std::string name = reader.choice(kType, names, "constant");
  return *std::find_if(kinds.begin(), kinds.end(), [&](const ScheduleKind& kind) { return kind.name == name; });
}

Rule read(UpdaterAttributes& reader, const Kinds& kinds) {
  const bool typed = reader.has(kType);
  const ScheduleKind kind = take_kind(reader, kinds);
  const std::vector<std::string> known = keys_of(kind);
  const auto refuse_others = [&](auto is_other) {
    for (const std::string& key : reader.rest()) {
      if (!is_other(key)) continue;
      reader.bad(key, text("the schedule \"", kind.name, "\"",
                           typed ? "" : text(", that without \"", reader.name(kType), "\","), " has no key \"", key,
                           "\"; its keys: ", base::joined(known)));
    }
  };
  // A misspelt key is more of a help than the one that then is missing. Parts take their keys while the rule is made.
  refuse_others([&](const std::string& key) {
    return !(kind.has_parts && key.find('.') != std::string::npos) &&
           std::find(known.begin(), known.end(), key) == known.end();
  });
  const double warm_up = reader.number(kWarmUp, {}, 0);
  Rule rule = kind.make(reader);
  refuse_others([](const std::string& /*key*/) { return true; });
  if (warm_up == 0) return rule;
  return [warm_up, rule](double t) { return t <= warm_up ? t / warm_up : rule(t - warm_up); };
}

}  // namespace

Rule read_part(UpdaterAttributes part) {
  if (!part.has(kType))
    fail(TN_INVALID, SubjectName{part.name(kType)}, "attribute \"", part.name(kType), "\" is missing");
  return read(part, simple_kinds());
}

Schedule Schedule::take(Values& attributes) {
  UpdaterAttributes reader(attributes, kPrefix);
  Schedule schedule;
  schedule.rule_ = read(reader, all_kinds());
  return schedule;
}

std::vector<std::string> Schedule::names() {
  std::set<std::string> keys{kType};
  for (const ScheduleKind& kind : all_kinds())
    for (const std::string& key : keys_of(kind)) keys.insert(key);
  std::vector<std::string> names;
  for (const std::string& key : keys) names.push_back(kPrefix + key);
  return names;
}

}  // namespace tenon::host

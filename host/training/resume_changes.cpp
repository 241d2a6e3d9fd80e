// SPDX-License-Identifier: Apache-2.0
#include "host/training/resume_changes.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "base/nearest.h"
#include "core/error.h"
#include "host/training/resume_check.h"

namespace tenon::host {

using namespace core;
using nlohmann::json;

namespace {

// Attributes of updaters after whose change the states mean what they meant: those that change the gradient before an
// updater gets it, or the step that it makes of its states. `schedule` stands for all of its keys. Not the shares that
// averages keep, such as beta1: the corrections of their first steps assume that these have always been the same.
constexpr std::array kOfUpdaters = {"learning_rate", "schedule", "clip_norm", "clip_value", "l1", "l2", "weight_decay"};
constexpr const char* kUpdater = "updater.";
constexpr const char* kGroups = "groups.";
constexpr const char* kBatch = "reader.batch";
constexpr const char* kPassBatches = "pass_batches";
constexpr const char* kPasses = "passes";  // no part of a run

std::vector<std::string> changeable() {
  std::vector<std::string> names = {kBatch, kPassBatches, kPasses};
  for (const char* const prefix : {kUpdater, kGroups})
    for (const char* const attribute : kOfUpdaters) names.push_back(std::string(prefix) + attribute);
  return names;
}

// Takes over the members `name` and "name.*" of an object.
void take_over(json& stored, const json& present, const std::string& name) {
  if (!stored.is_object() || !present.is_object()) return;
  std::set<std::string> keys;
  for (const json* const each : {static_cast<const json*>(&stored), &present})
    for (const auto& [key, value] : each->items())
      if (key == name || key.starts_with(name + ".")) keys.insert(key);
  for (const std::string& key : keys)
    if (present.contains(key))
      stored[key] = present[key];
    else
      stored.erase(key);
}

// Returns whether both runs have a list of groups of one length.
bool have_groups(const json& stored, const json& present) {
  const auto is_list = [](const json& run) {
    return run.contains("updater") && run["updater"].is_object() && run["updater"].contains("groups") &&
           run["updater"]["groups"].is_array();
  };
  return is_list(stored) && is_list(present) &&
         stored["updater"]["groups"].size() == present["updater"]["groups"].size();
}

// Calls `each` with the number, the stored description and the present one of every updater that a prefix names.
template <typename Each>
void for_updaters(const std::string& prefix, json& stored, const json& present, const Each& each) {
  if (prefix == kUpdater && stored.contains("updater") && present.contains("updater"))
    each(0, stored["updater"], present["updater"]);
  if (prefix != kGroups || !have_groups(stored, present)) return;
  for (size_t i = 0; i < present["updater"]["groups"].size(); ++i)
    each(i + 1, stored["updater"]["groups"][i], present["updater"]["groups"][i]);
}

void accept_attribute(const std::string& prefix, const std::string& attribute, json& stored, const json& present,
                      RunChanges& changes) {
  for_updaters(prefix, stored, present, [&](size_t number, json& before, const json& now) {
    if (!before.is_object() || !now.is_object() || !before.contains("attributes") || !now.contains("attributes"))
      return;
    const json attributes = before["attributes"];
    take_over(before["attributes"], now["attributes"], attribute);
    if (attribute == "learning_rate" && before["attributes"] != attributes) changes.rates.push_back(number);
  });
}

// Whether a data set can have `before` samples in whole minibatches of one number and `now` of another, where the rest
// is dropped.
bool drop_alike(int64_t before, int64_t batch_before, int64_t now, int64_t batch_now) {
  return before >= 0 && now >= 0 && std::max(before, now) < std::min(before + batch_before, now + batch_now);
}

// The wrapper that makes minibatches is a step {"batch", "drop_last"} of a reader.
void accept_batch(json& stored, const json& present, RunChanges& changes) {
  const auto has_steps = [](const json& run) {
    return run.contains("reader") && run["reader"].is_object() && run["reader"].contains("steps") &&
           run["reader"]["steps"].is_array();
  };
  if (!has_steps(stored) || !has_steps(present)) return;
  json& reader = stored["reader"];
  const json& now = present["reader"];
  if (reader["steps"].size() != now["steps"].size()) return;
  const auto batch_of = [](const json& step) {
    return step.is_object() && step.contains("drop_last") && step.contains("batch") && step["batch"].is_number_integer()
               ? step["batch"].get<int64_t>()
               : 0;
  };
  for (size_t i = 0; i < now["steps"].size(); ++i) {
    json& step = reader["steps"][i];
    const int64_t before = batch_of(step), after = batch_of(now["steps"][i]);
    if (before <= 0 || after <= 0 || before == after) continue;
    changes.batch = before;
    step["batch"] = after;
    reader["batch"] = now["batch"];
    const json size = reader.value("samples", json()), size_now = now.value("samples", json());
    const bool numbers = size.is_number_integer() && size_now.is_number_integer();
    if (step["drop_last"] == true && numbers && drop_alike(size.get<int64_t>(), before, size_now.get<int64_t>(), after))
      reader["samples"] = size_now;
  }
}

}  // namespace

void check_changeable(const std::vector<std::string>& names) {
  const std::vector<std::string> possible = changeable();
  for (const std::string& name : names)
    if (std::find(possible.begin(), possible.end(), name) == possible.end())
      fail(TN_INVALID, SubjectName{"resume_with"}, "checkpoint: resume_with is \"", name,
           "\", which a resume cannot change", base::suggestion(name, possible));
}

RunChanges accept_changes(const std::vector<std::string>& names, json& stored, const json& present) {
  RunChanges changes;
  const json before = stored;
  for (const std::string& name : names) {
    if (name == kBatch) accept_batch(stored, present, changes);
    if (name == kPassBatches) take_over(stored, present, name);
    for (const std::string prefix : {kUpdater, kGroups})
      if (name.starts_with(prefix)) accept_attribute(prefix, name.substr(prefix.size()), stored, present, changes);
  }
  compare("", before, stored, changes.lines);
  // Of a changed batch, reader.batch says as much.
  std::erase_if(changes.lines, [](const std::string& line) { return line.starts_with("reader.steps["); });
  return changes;
}

std::vector<std::string> accepting_names(json stored, const json& present) {
  std::vector<std::string> names;
  for (const std::string& name : changeable())
    if (!accept_changes({name}, stored, present).lines.empty()) names.push_back(name);
  return stored == present ? names : std::vector<std::string>();
}

}  // namespace tenon::host

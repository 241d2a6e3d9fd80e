// SPDX-License-Identifier: Apache-2.0
#include "host/training/resume_check.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "core/error.h"
#include "host/plugins/registry.h"

namespace tenon::host {

using namespace core;
using nlohmann::json;

namespace {

std::string shown(const json& value) {
  constexpr size_t kLongest = 120;
  return base::beginning(value.dump(-1, ' ', false, json::error_handler_t::replace), kLongest);
}

// Whether all elements of a list are objects with a name.
bool is_named(const json& list) {
  return list.is_array() && !list.empty() && std::all_of(list.begin(), list.end(), [](const json& each) {
           return each.is_object() && each.contains("name") && each["name"].is_string();
         });
}

json by_name(const json& list) {
  json result = json::object();
  for (const json& each : list) result[each["name"].get<std::string>()] = each;
  return result;
}

json names_in_order(const json& list) {
  json result = json::array();
  for (const json& each : list) result.push_back(each["name"]);
  return result;
}

void compare_members(const std::string& path, const json& stored, const json& present,
                     std::vector<std::string>& differences) {
  std::set<std::string> keys;
  for (const auto& [key, value] : stored.items()) keys.insert(key);
  for (const auto& [key, value] : present.items()) keys.insert(key);
  for (const std::string& key : keys) {
    const std::string at = path.empty() ? key : path + "." + key;
    if (!present.contains(key))
      differences.push_back(at + ": in the checkpoint (" + shown(stored[key]) + "), not now");
    else if (!stored.contains(key))
      differences.push_back(at + ": not in the checkpoint, now " + shown(present[key]));
    else
      compare(at, stored[key], present[key], differences);
  }
}

// Compares two lists of objects of which one has more, such as the steps of a reader: what both begin and end with is
// the same place in both, and the rest of the longer one is missing in the other.
void compare_steps(const std::string& path, const json& stored, const json& present,
                   std::vector<std::string>& differences) {
  const size_t shorter = std::min(stored.size(), present.size());
  size_t head = 0, tail = 0;
  while (head < shorter && stored[head] == present[head]) ++head;
  while (head + tail < shorter && stored[stored.size() - 1 - tail] == present[present.size() - 1 - tail]) ++tail;
  const auto at = [&](size_t i) { return path + "[" + std::to_string(i) + "]"; };
  for (size_t i = head; i + tail < std::max(stored.size(), present.size()); ++i) {
    const bool before = i + tail < stored.size(), now = i + tail < present.size();
    if (before && now)
      compare(at(i), stored[i], present[i], differences);
    else if (before)
      differences.push_back(at(i) + ": in the checkpoint (" + shown(stored[i]) + "), not now");
    else
      differences.push_back(at(i) + ": not in the checkpoint, now " + shown(present[i]));
  }
}

bool has_objects(const json& list) {
  return list.is_array() && std::any_of(list.begin(), list.end(), [](const json& each) { return each.is_object(); });
}

using TypeAttributes = std::function<const std::vector<Attribute>&(const std::string& type)>;

// component: {"type", "attributes"}, with parts of the same form in the lists `inner` and `groups`. Another form stays.
void add_defaults(json& component, const TypeAttributes& attributes_of) {
  if (!component.is_object()) return;
  for (const char* const parts : {"inner", "groups"})
    if (const auto list = component.find(parts); list != component.end() && list->is_array())
      for (json& part : *list) add_defaults(part, attributes_of);
  const auto type = component.find("type"), attributes = component.find("attributes");
  if (type == component.end() || !type->is_string() || attributes == component.end() || !attributes->is_object())
    return;
  try {
    for (const Attribute& attribute : attributes_of(type->get<std::string>()))
      attributes->emplace(attribute.name, to_json(attribute.initial));
  } catch (const Error& error) {
    if (error.code() != TN_NOT_FOUND && error.code() != TN_REFUSED) throw;
  }
}

}  // namespace

void add_defaults(json& run, Registry& registry) {
  const TypeAttributes of_layer = [&](const std::string& type) -> auto& {
    return registry.layer(type).description.attributes;
  };
  const TypeAttributes of_updater = [&](const std::string& type) -> auto& {
    return registry.updater(type).description.attributes;
  };
  if (run.contains("topology") && run["topology"].is_object() && run["topology"].contains("layers"))
    for (json& layer : run["topology"]["layers"]) add_defaults(layer, of_layer);
  if (run.contains("updater")) add_defaults(run["updater"], of_updater);
}

void compare(const std::string& path, const json& stored, const json& present, std::vector<std::string>& differences) {
  if (stored == present) return;
  if (is_named(stored) && is_named(present)) {
    const size_t before = differences.size();
    compare_members(path, by_name(stored), by_name(present), differences);
    if (differences.size() == before) compare(path, names_in_order(stored), names_in_order(present), differences);
  } else if (stored.is_object() && present.is_object()) {
    compare_members(path, stored, present, differences);
  } else if (stored.is_array() && present.is_array() && stored.size() == present.size()) {
    for (size_t i = 0; i < stored.size(); ++i)
      compare(path + "[" + std::to_string(i) + "]", stored[i], present[i], differences);
  } else if (has_objects(stored) && has_objects(present)) {
    compare_steps(path, stored, present, differences);
  } else {
    differences.push_back(path + ": " + shown(stored) + " in the checkpoint, " + shown(present) + " now");
  }
}

void check_same_run(const std::string& file, const json& stored, const json& present, bool inexact,
                    const std::string& hint) {
  constexpr const char* kProvider = "provider";
  std::vector<std::string> differences;
  compare("", stored, present, differences);
  if (inexact) std::erase_if(differences, [&](const std::string& line) { return line.rfind(kProvider, 0) == 0; });
  if (differences.empty()) return;
  const bool only_provider = std::all_of(differences.begin(), differences.end(),
                                         [&](const std::string& line) { return line.rfind(kProvider, 0) == 0; });
  std::string all;
  for (const std::string& line : differences) all += (all.empty() ? " " : "; ") + line;
  fail(TN_INVALID, SubjectName{file}, file, ": the checkpoint is of another training; ", differences.size(),
       differences.size() == 1 ? " difference:" : " differences:", all,
       only_provider ? "; an inexact resume accepts these, and rounds differently" : hint);
}

}  // namespace tenon::host

// SPDX-License-Identifier: Apache-2.0
#include "host/api/parameter_copy.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "base/nearest.h"
#include "base/text.h"
#include "core/attribute.h"
#include "core/parameter_set.h"
#include "core/shape.h"

namespace tenon::host {

namespace {

using nlohmann::json;

// Refuses a name that includes none of the entries of a set.
void require_some(const ParameterSet& set, const char* option, const std::string& name, const char* which) {
  std::vector<std::string> known;
  for (const ParameterEntry& entry : set.entries()) known.push_back(entry.name);
  if (std::none_of(known.begin(), known.end(), [&](const std::string& each) { return is_below(each, name); }))
    fail_parameter(TN_NOT_FOUND, name, "options.", option, ": the set that is copied ", which, " has no parameter \"",
                   name, "\"", base::suggestion(name, known));
}

// Returns the name in the target for an entry of the source: the longest renamed name above it decides.
std::string renamed(const CopyOptions& options, const std::string& name) {
  const std::pair<std::string, std::string>* best = nullptr;
  for (const auto& each : options.renames)
    if (is_below(name, each.first) && (best == nullptr || each.first.size() > best->first.size())) best = &each;
  return best == nullptr ? name : best->second + name.substr(best->first.size());
}

// Returns the entries of the source by their names in the target.
std::map<std::string, const ParameterEntry*> by_name_in_target(const ParameterSet& from, const CopyOptions& options) {
  std::map<std::string, const ParameterEntry*> result;
  for (const ParameterEntry& entry : from.entries()) {
    const std::string name = renamed(options, entry.name);
    const auto [at, added] = result.emplace(name, &entry);
    if (!added)
      fail_parameter(TN_INVALID, name, "the parameters \"", at->second->name, "\" and \"", entry.name,
                     "\" of the set that is copied from both become \"", name, "\"");
  }
  return result;
}

std::string shown(const ParameterEntry& entry) { return dtype_name(entry.dtype) + " " + to_string(entry.shape); }

}  // namespace

json copy_parameters(ParameterSet& to, const ParameterSet& from, const CopyOptions& options) {
  if (!to.has_values() || !from.has_values())
    fail(TN_MISUSE, "the set that is copied ", to.has_values() ? "from" : "to", " has no values, it was only declared");
  for (const auto& [source, target] : options.renames) {
    require_some(from, "renames", source, "from");
    require_some(to, "renames", target, "to");
  }
  for (const std::string& name : options.skip) require_some(to, "skip", name, "to");
  const std::map<std::string, const ParameterEntry*> request = by_name_in_target(from, options);
  json report;
  for (const char* const part : {"copied", "skipped", "missing", "reshaped", "extra"}) report[part] = json::array();
  std::string faults;
  const auto fault = [&](const auto&... parts) { base::append(faults, text(parts...), "; "); };
  std::vector<std::pair<const ParameterEntry*, const ParameterEntry*>> copies;  // target, source
  for (const ParameterEntry& entry : to.entries()) {
    const auto found = request.find(entry.name);
    const ParameterEntry* const source = found == request.end() ? nullptr : found->second;
    if (std::any_of(options.skip.begin(), options.skip.end(),
                    [&](const std::string& above) { return is_below(entry.name, above); })) {
      report["skipped"].push_back(entry.name);
    } else if (source == nullptr) {
      report["missing"].push_back(entry.name);
      fault(entry.name, ": missing");
    } else if (source->shape != entry.shape || source->dtype != entry.dtype) {
      report["reshaped"].push_back(
          {{"name", entry.name}, {"from", source->name}, {"shape", entry.shape}, {"from_shape", source->shape}});
      fault(entry.name, ": expected ", shown(entry), ", got ", shown(*source));
    } else {
      report["copied"].push_back({{"name", entry.name}, {"from", source->name}});
      copies.emplace_back(&entry, source);
    }
  }
  for (const auto& [name, source] : request)
    if (!to.contains(name)) report["extra"].push_back(source->name);
  if (!faults.empty() && !options.partial)
    fail(TN_INVALID, "the set that is copied from does not fit: ", faults,
         report["extra"].empty() ? "" : "; it alone has " + report["extra"].dump());
  for (const auto& [target, source] : copies)
    if (target->table)  // its rows of this process
      to.set(target->name, {source->dtype, source->shape, from.values(*source)});
    else if (target->count > 0)
      std::memcpy(to.change(*target), from.values(*source), target->count * sizeof(float));
  return report;
}

}  // namespace tenon::host

// SPDX-License-Identifier: Apache-2.0
#include "host/cli/job/initial.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/nearest.h"
#include "base/text.h"
#include "host/cli/cli.h"

namespace tenon::cli {

namespace {

using nlohmann::json;

bool is_below(const std::string& name, const std::string& above) {
  return name == above || name.rfind(above + ".", 0) == 0;
}

std::vector<std::string> parameter_names(const json& parameters) {
  std::vector<std::string> names;
  for (const json& each : parameters) names.push_back(each.at("name"));
  return names;
}

// Refuses a name that includes none of `known`.
void require_some(const JobInit& init, const char* key, const std::string& name, const std::vector<std::string>& known,
                  const std::string& where) {
  if (std::any_of(known.begin(), known.end(), [&](const std::string& each) { return is_below(each, name); })) return;
  throw Failure(kBadConfig, init.place + ": [init]: key \"" + key + "\": " + where + " has no parameter \"" + name +
                                "\"" + base::suggestion(name, known));
}

// Returns the job's name for a parameter of the file: the longest renamed name above it decides.
std::string renamed(const JobInit& init, const std::string& name) {
  const std::pair<std::string, std::string>* best = nullptr;
  for (const auto& each : init.rename)
    if (is_below(name, each.first) && (best == nullptr || each.first.size() > best->first.size())) best = &each;
  return best == nullptr ? name : best->second + name.substr(best->first.size());
}

std::string shown(const json& parameter) {
  return parameter.at("dtype").get<std::string>() + " " + parameter.at("shape").dump();
}

}  // namespace

InitialFit fit(const JobInit& init, const json& file, const json& job) {
  const std::vector<std::string> file_names = parameter_names(file), job_names = parameter_names(job);
  for (const auto& [from, to] : init.rename) {
    require_some(init, "rename", from, file_names, "\"" + init.file + "\"");
    require_some(init, "rename", to, job_names, "the job");
  }
  for (const std::string& name : init.skip) require_some(init, "skip", name, job_names, "the job");
  std::map<std::string, const json*> given;  // by the job's name
  InitialFit result;
  for (const json& each : file) {
    const std::string from = each.at("name"), to = renamed(init, from);
    const auto [at, added] = given.emplace(to, &each);
    if (!added)
      throw Failure(kBadConfig, init.place + ": [init]: the parameters \"" + at->second->at("name").get<std::string>() +
                                    "\" and \"" + from + "\" of \"" + init.file + "\" both become \"" + to + "\"");
    if (std::find(job_names.begin(), job_names.end(), to) == job_names.end()) result.extra.push_back(from);
  }
  for (const json& each : job) {
    const std::string name = each.at("name");
    const auto found = given.find(name);
    if (std::any_of(init.skip.begin(), init.skip.end(), [&](const auto& above) { return is_below(name, above); }))
      result.skipped.push_back(name);
    else if (found == given.end())
      result.faults.push_back(name + ": not in the file");
    else if (found->second->at("shape") != each.at("shape") || found->second->at("dtype") != each.at("dtype"))
      result.faults.push_back(name + ": " + shown(*found->second) + " in the file, " + shown(each) + " in the job");
    else
      result.taken.push_back({found->second->at("name"), name});
  }
  return result;
}

InitialFit initialise(const JobInit& init, const Parameters& from, const Parameters& to) {
  InitialFit found = fit(init, json::parse(from.describe()), json::parse(to.describe()));
  if (!found.faults.empty()) {
    std::string all = base::joined(found.faults, {}, "; ");
    if (!found.extra.empty()) all += "; only in the file: " + base::joined(found.extra);
    throw Failure(kBadConfig, init.place + ": [init]: \"" + init.file + "\" does not fit the job: " + all);
  }
  for (const InitialFit::Pair& pair : found.taken) to.set(pair.to, from.get(pair.from));
  return found;
}

std::string report_of(const JobInit& init, const InitialFit& fit) {
  std::string line =
      std::to_string(fit.taken.size()) + (fit.taken.size() == 1 ? " parameter" : " parameters") + " from " + init.file;
  if (!fit.skipped.empty()) line += "; skipped: " + base::joined(fit.skipped);
  if (!fit.extra.empty()) line += "; only in the file: " + base::joined(fit.extra);
  return line;
}

}  // namespace tenon::cli

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>
#include <tenon/check.hpp>

namespace tenon::check {

namespace {

using nlohmann::json;

const char* name_of(Outcome outcome) {
  return outcome == Outcome::kPassed ? "passed" : outcome == Outcome::kFailed ? "failed" : "skipped";
}

// A word of a command line.
std::string quoted(const std::string& word) {
  if (word.find_first_of(" '\"\\$`*?[](){}<>|&;~#\t\n") == std::string::npos) return word;
  std::string result = "'";
  for (const char c : word) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

}  // namespace

int64_t Report::count(Outcome outcome) const {
  return std::count_if(results.begin(), results.end(), [&](const Result& result) { return result.outcome == outcome; });
}

std::string reproduce(const Report& report, const Result& result) {
  std::string command = "tenon plugins check " + quoted(report.file);
  if (result.kind != "plugin") command += " " + quoted(result.component);
  command += " --only " + quoted(result.check) + " --seed " + std::to_string(report.seed);
  if (!report.cases.empty()) command += " --cases " + quoted(report.cases);
  for (const std::string& folder : report.plugin_paths) command += " --plugins " + quoted(folder);
  return command;
}

std::string to_json(const Report& report) {
  json results = json::array();
  for (const Result& each : report.results) {
    results.push_back({{"kind", each.kind},
                       {"component", each.component},
                       {"check", each.check},
                       {"outcome", name_of(each.outcome)},
                       {"comparisons", each.comparisons}});
    if (!each.message.empty()) results.back()["message"] = each.message;
    if (each.outcome == Outcome::kFailed) results.back()["reproduce"] = reproduce(report, each);
  }
  const json document = {{"file", report.file},
                         {"plugin", report.plugin},
                         {"seed", report.seed},
                         {"passed", report.count(Outcome::kPassed)},
                         {"failed", report.count(Outcome::kFailed)},
                         {"skipped", report.count(Outcome::kSkipped)},
                         {"results", results}};
  return document.dump(2, ' ', false, json::error_handler_t::replace);
}

}  // namespace tenon::check

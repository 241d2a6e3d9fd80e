// tenon plugins check: the conformance kit on one plugin. SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <tenon/check.hpp>

#include "host/cli/job/node.h"
#include "host/cli/job/toml_tree.h"
#include "host/cli/options.h"
#include "host/cli/verbs.h"

namespace tenon::cli {

namespace {

using check::Outcome;
using nlohmann::json;

json json_of(const Node& node) {
  if (const auto* members = node.get<Node::Members>()) {
    json result = json::object();
    for (const auto& [key, member] : *members) result[key] = json_of(member);
    return result;
  }
  if (const auto* list = node.get<Node::List>()) {
    json result = json::array();
    for (const Node& each : *list) result.push_back(json_of(each));
    return result;
  }
  if (const auto* text = node.get<std::string>()) return *text;
  if (const auto* integer = node.get<int64_t>()) return *integer;
  if (const auto* number = node.get<double>()) return *number;
  if (const auto* flag = node.get<bool>()) return *flag;
  throw Failure(kBadConfig, node.place + ": expected a number, a text, a list or a table, got a date");
}

// Reads the list "case" of a TOML file as JSON.
std::string read_cases(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Failure(kNotFound, "cannot read the cases \"" + path + "\"");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Node root = parse_toml(text, path);
  Section section(root, "");
  const Node* const list = section.find("case");
  section.finish();
  if (list == nullptr || !list->is_list_of_tables()) throw Failure(kBadConfig, path + ": expected tables [[case]]");
  return json_of(*list).dump();
}

// "gradient": printed as `layer swish: 12 checks passed, 1 skipped`, and a line for each failure.
class Printer {
 public:
  void add(const check::Result& result) {
    const std::string name = result.kind + " " + result.component;
    if (name != name_) finish();
    name_ = name;
    ++counts_[result.outcome];
    comparisons_ += result.comparisons;
    if (result.outcome == Outcome::kFailed) failures_.push_back(result.check + ": " + result.message);
  }
  void finish() {
    if (name_.empty()) return;
    std::cout << plain(name_ + ": " + std::to_string(counts_[Outcome::kPassed]) + " passed, " +
                       std::to_string(counts_[Outcome::kFailed]) + " failed, " +
                       std::to_string(counts_[Outcome::kSkipped]) + " skipped; " + std::to_string(comparisons_) +
                       " comparisons")
              << "\n";
    for (const std::string& failure : failures_) std::cout << plain("  FAILED " + failure) << "\n";
    std::cout.flush();
    name_.clear();
    counts_.clear();
    failures_.clear();
    comparisons_ = 0;
  }

 private:
  std::string name_;
  std::map<Outcome, int64_t> counts_;
  std::vector<std::string> failures_;
  int64_t comparisons_ = 0;
};

void print_end(const check::Report& report) {
  std::cout << plain("plugin " + report.plugin + ": " + std::to_string(report.count(Outcome::kPassed)) + " passed, " +
                     std::to_string(report.count(Outcome::kFailed)) + " failed, " +
                     std::to_string(report.count(Outcome::kSkipped)) + " skipped; seed " + std::to_string(report.seed))
            << "\n";
  for (const check::Result& result : report.results)
    if (result.outcome == Outcome::kFailed)
      std::cout << plain("to repeat " + result.check + ": " + check::reproduce(report, result)) << "\n";
}

void print_list() {
  std::string kind;
  for (const check::Listed& listed : check::list_checks()) {
    if (listed.kind != kind) std::cout << (kind.empty() ? "" : "\n") << listed.kind << "\n";
    kind = listed.kind;
    std::cout << "  " << listed.check << std::string(16 - std::min<size_t>(15, listed.check.size()), ' ')
              << listed.meaning << "\n";
  }
}

}  // namespace

int run_plugins_check(const Arguments& arguments) {
  namespace po = boost::program_options;
  check::Options checked;
  std::string cases;
  bool as_json = false, list = false;
  Options options(
      "plugins check", {"[FILE.so]", "[TYPE]"},
      "Checks the components of a plugin, or the one called TYPE, against the rules of the plugin interface.\n"
      "Runs plugin code in child processes. Exit code 0: all checks pass; 70: a check fails.");
  options.list.add_options()("json", po::bool_switch(&as_json), "print JSON: counts and all results")(
      "list", po::bool_switch(&list), "print the checks and their meanings, and exit")(
      "seed", po::value(&checked.seed)->value_name("N"), "seed of all numbers that are drawn; default 1")(
      "only", po::value(&checked.checks)->value_name("CHECK"), "run this check alone; may be repeated")(
      "seconds", po::value(&checked.seconds)->value_name("N"), "the longest time of one check; default 20")(
      "cases", po::value(&cases)->value_name("FILE"),
      "TOML with attributes and inputs of components, where those that are drawn do not do");
  add_plugins_option(options, checked.plugin_paths);
  if (!options.parse(arguments)) return kDone;
  if (list) {
    print_list();
    return kDone;
  }
  if (options.given().empty()) options.fail("expected FILE.so");
  if (checked.seconds < 1) options.fail("--seconds: expected at least 1, got " + std::to_string(checked.seconds));
  checked.file = options.operand(0);
  if (options.given().size() > 1) checked.type = options.operand(1);
  if (!cases.empty()) {
    checked.cases = read_cases(cases);
    checked.folder = std::filesystem::absolute(cases).parent_path().string();
  }
  Printer printer;
  if (!as_json) checked.progress = [&](const check::Result& result) { printer.add(result); };
  const check::Report report = check::run(checked);
  printer.finish();
  if (as_json)
    std::cout << check::to_json(report) << "\n";
  else
    print_end(report);
  return report.count(Outcome::kFailed) == 0 ? kDone : kInternal;
}

}  // namespace tenon::cli

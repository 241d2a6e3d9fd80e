// The program tenon-plugins-check: the conformance kit on one plugin. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <map>
#include <tenon/check.hpp>

#include "host/cli/options.h"
#include "host/cli/program.h"

namespace tenon::cli {

namespace {

using check::Outcome;

// Prints a line for each component, `layer swish: 12 passed, 0 failed, ...`, and one for each check that failed.
class Printer {
 public:
  void add(const check::Result& result) {
    const std::string name = result.kind + " " + result.component;
    if (name != name_) finish();
    name_ = name;
    ++counts_[result.outcome];
    comparisons_ += result.comparisons;
    if (result.outcome == Outcome::kFailed) remarks_.push_back("FAILED " + result.check + ": " + result.message);
    if (result.outcome == Outcome::kSkipped && result.check == "chosen")
      remarks_.push_back("not run: " + result.message);
  }
  void finish() {
    if (name_.empty()) return;
    std::cout << plain(name_ + ": " + std::to_string(counts_[Outcome::kPassed]) + " passed, " +
                       std::to_string(counts_[Outcome::kFailed]) + " failed, " +
                       std::to_string(counts_[Outcome::kSkipped]) + " skipped; " + std::to_string(comparisons_) +
                       " comparisons")
              << "\n";
    for (const std::string& remark : remarks_) std::cout << plain("  " + remark) << "\n";
    std::cout.flush();
    name_.clear();
    counts_.clear();
    remarks_.clear();
    comparisons_ = 0;
  }

 private:
  std::string name_;
  std::map<Outcome, int64_t> counts_;
  std::vector<std::string> remarks_;
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

int run(const Arguments& arguments) {
  namespace po = boost::program_options;
  check::Options checked;
  bool as_json = false, list = false;
  int64_t seed = 1;
  Options options(
      "plugins check", {"[FILE.so]", "[TYPE]"},
      "Checks the components of a plugin, or the one called TYPE, against the rules of the plugin interface.\n"
      "Runs plugin code in child processes. Exit code 0: all checks pass; 70: a check fails.");
  options.list.add_options()("json", po::bool_switch(&as_json), "print JSON: counts and all results")(
      "list", po::bool_switch(&list), "print the checks and their meanings, and exit")(
      "seed", po::value(&seed)->value_name("N"), "seed of all numbers that are drawn; default 1")(
      "only", po::value(&checked.checks)->value_name("CHECK"), "run this check alone; may be repeated")(
      "seconds", po::value(&checked.seconds)->value_name("N"), "the longest time of one check; default 20")(
      "cases", po::value(&checked.cases)->value_name("FILE"),
      "TOML with attributes and inputs of components, where those that are drawn do not do")(
      "plugins", po::value(&checked.plugin_paths)->value_name("DIR"),
      "a folder of the plugins that FILE works with, in place of the installed ones; may be repeated");
  if (!options.parse(arguments)) return kDone;
  if (list) {
    print_list();
    return kDone;
  }
  if (options.given().empty()) options.fail("expected FILE.so");
  if (checked.seconds < 1) options.fail("--seconds: expected at least 1, got " + std::to_string(checked.seconds));
  if (seed < 0) options.fail("--seed: expected at least 0, got " + std::to_string(seed));
  checked.seed = static_cast<uint64_t>(seed);
  checked.file = options.operand(0);
  if (options.given().size() > 1) checked.type = options.operand(1);
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

}  // namespace

}  // namespace tenon::cli

int main(int argc, char** argv) { return tenon::cli::program(argc, argv, tenon::cli::run); }

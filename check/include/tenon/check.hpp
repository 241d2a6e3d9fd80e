// The conformance kit: checks of the components of a plugin against the rules of the plugin interface, for the program
// (`tenon plugins check`) and for tests of authors (tenon/check_gtest.hpp). docs/plugin-check.md describes the checks.
// Link Tenon::check, a static library over the public API.
//
//   tenon::check::Options options;
//   options.file = "swish.so";
//   const tenon::check::Report report = tenon::check::run(options);
//
// SPDX-License-Identifier: Apache-2.0
#ifndef TENON_CHECK_HPP
#define TENON_CHECK_HPP

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tenon::check {

enum class Outcome { kPassed, kFailed, kSkipped };

// One check of one component.
struct Result {
  std::string kind;       // "plugin", "layer", "cost", "metric", "kernel", "updater", "reader", "device", "comm"
  std::string component;  // the type's name; of a plugin its id
  std::string check;      // "gradient"
  Outcome outcome = Outcome::kPassed;
  std::string message;      // the fault, or the reason of a skip
  int64_t comparisons = 0;  // single comparisons that were made
};

struct Options {
  std::string file;  // of the plugin
  std::string type;  // checks this component alone; empty: all
  // Names of the checks to run; empty: all.
  std::vector<std::string> checks = {};
  // Folders with the plugins that FILE works with, such as the device; empty: tenon/plugins beside libtenon.so.
  std::vector<std::string> plugin_paths = {};
  uint64_t seed = 1;  // of all numbers that are drawn; the same seed draws the same
  int seconds = 20;   // the longest time of one check, at least 1
  // A file of cases, TOML or JSON, as docs/plugin-check.md defines it; empty: only drawn cases.
  std::string cases = {};
  // Called after each check, on the calling thread; may be empty.
  std::function<void(const Result&)> progress = nullptr;
};

struct Report {
  std::string file;
  std::string plugin;  // its id
  uint64_t seed = 0;
  std::string cases;  // as in Options, likewise plugin_paths
  std::vector<std::string> plugin_paths;
  std::vector<Result> results;

  [[nodiscard]] int64_t count(Outcome outcome) const;
};

// Runs the checks. Plugin code runs in child processes alone, which are made by fork() and end before the call returns;
// a crash, an exit or a check that takes too long is a failed check. Throws tenon::Error: TN_NOT_FOUND without the file
// or the type, TN_REFUSED if the file is not a plugin that a host admits, TN_INVALID for wrong options, TN_IO. Call it
// from one thread of a process at a time, and best while no other thread runs: a child inherits locks of other threads.
[[nodiscard]] Report run(const Options& options);

// JSON: {file, plugin, seed, passed, failed, skipped, results: [{kind, component, check, outcome, message, comparisons,
// reproduce}]}. `reproduce` is a command.
[[nodiscard]] std::string to_json(const Report& report);
// The command that repeats a check.
[[nodiscard]] std::string reproduce(const Report& report, const Result& result);

// The name and the meaning of each check of a kind of component, in the order in which they run.
struct Listed {
  std::string kind, check, meaning;
};
[[nodiscard]] std::vector<Listed> list_checks();

}  // namespace tenon::check
#endif

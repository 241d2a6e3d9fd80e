// Command lines: the options of one verb, those that verbs share, --help, and mistakes with a suggestion.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/program_options.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "host/cli/cli.h"
#include "host/cli/job/job.h"

namespace tenon::cli {

// An option as it was given: "set", {"updater.learning_rate=0.01"}.
struct GivenOption {
  std::string name;
  std::vector<std::string> values;  // none of a switch
};

// The options of one verb. Add options to `list`, then parse.
class Options {
 public:
  // operands: the names of the operands, one word each: {"JOB.toml"}. The last one may be given several times if its
  // name ends with "...", and may be left out if it is in brackets: "[TYPE]".
  Options(std::string verb, std::vector<std::string> operands, std::string about);

  boost::program_options::options_description list;

  // Returns false if --help was given and printed. Throws Failure(kUsage).
  bool parse(const Arguments& arguments);
  [[nodiscard]] const std::string& operand(size_t number) const { return given_[number]; }
  [[nodiscard]] const std::vector<std::string>& given() const { return given_; }
  // Returns what was given beside the operands, in order.
  [[nodiscard]] const std::vector<GivenOption>& given_options() const { return given_options_; }
  // Throws Failure(kUsage) with a reference to --help.
  [[noreturn]] void fail(const std::string& message) const;

 private:
  // Whether the last operand may be given several times.
  [[nodiscard]] bool repeats() const;
  void print_help() const;
  void parse_checked(const Arguments& arguments);

  std::string verb_;
  std::vector<std::string> operands_;
  std::string about_;
  std::vector<std::string> given_;
  std::vector<GivenOption> given_options_;
  bool help_ = false;
};

enum class LogFormat { kText, kJson, kNone };

// Which plugins the program may use.
struct PluginOptions {
  std::vector<std::string> folders;
  std::string set;
  bool not_installed = false;

  void add_to(Options& options);  // --plugins, --plugin-set, --no-installed-plugins
  // Makes a host. Its plugins: those of these folders, which must exist, of the folders of a job, of TENON_PLUGIN_PATH,
  // and the installed ones, as far as the set admits them. Prints refused plugins.
  [[nodiscard]] Host host(HostOptions options, const std::vector<std::string>& of_job = {}) const;
  // Makes a host of one thread.
  [[nodiscard]] Host host() const;
};

// The options of the verbs that run a job.
struct JobOptions {
  std::vector<std::string> sets;
  PluginOptions plugins;
  static constexpr int64_t kNotGiven = INT64_MIN;  // keeps the job's value
  int64_t threads = kNotGiven;
  int64_t seed = kNotGiven;
  int64_t passes = kNotGiven;
  bool quiet = false;
  std::string log_format = "text";
  bool check = false, check_finite = false, require_portable = false;

  void add_to(Options& options);       // --set, --threads, --check, --check-finite, and those of plugins
  void add_log_to(Options& options);   // --quiet, --log-format
  void add_seed_to(Options& options);  // --seed
  // Loads the job and applies these options.
  [[nodiscard]] Job load(const Options& options, const std::string& path) const;
  // Returns what these options say of a job, for a verb that also works without one.
  [[nodiscard]] Job without_job(const Options& options) const;
  [[nodiscard]] LogFormat format(const Options& options) const;
  // Makes a host for the job with these options. Prints refused plugins. time_calls: as in HostOptions.
  [[nodiscard]] Host host(const Job& job, bool time_calls = false) const;

 private:
  void apply_to(Job& job, const Options& options) const;
};

// The deadline of verbs that run code of plugins in a process of its own.
struct Deadline {
  int64_t given = 300;

  void add_to(Options& options);  // --deadline
  [[nodiscard]] unsigned seconds(const Options& options) const;
};

}  // namespace tenon::cli

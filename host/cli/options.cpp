// SPDX-License-Identifier: Apache-2.0
#include "host/cli/options.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/nearest.h"

namespace tenon::cli {

namespace po = boost::program_options;

Options::Options(std::string verb, std::vector<std::string> operands, std::string about)
    : list("options"), verb_(std::move(verb)), operands_(std::move(operands)), about_(std::move(about)) {
  list.add_options()("help,h", po::bool_switch(&help_), "show this text and exit");
}

void Options::fail(const std::string& message) const {
  throw Failure(kUsage, message + "; see 'tenon " + verb_ + " --help'");
}

void Options::print_help() const {
  std::cout << "usage: tenon " << verb_ << " [options]";
  for (const std::string& operand : operands_) std::cout << " " << operand;
  std::cout << "\n\n" << about_ << "\n\n" << list;
}

bool Options::repeats() const {
  const std::string dots = "...";
  return !operands_.empty() && operands_.back().size() > dots.size() &&
         operands_.back().compare(operands_.back().size() - dots.size(), dots.size(), dots) == 0;
}

bool Options::parse(const Arguments& arguments) {
  try {
    parse_checked(arguments);
  } catch (const po::unknown_option& error) {
    std::vector<std::string> known;
    for (const auto& option : list.options()) known.push_back("--" + option->long_name());
    std::string name = error.get_option_name();
    name.resize(std::min(name.size(), name.find('=')));  // Boost leaves the value in the name
    const std::string near = base::nearest(name, known);
    fail("unknown option \"" + name + "\"" + (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
  } catch (const po::error& error) {
    fail(error.what());
  }
  if (help_) {
    print_help();
    return false;
  }
  for (size_t i = 0; i < given_.size() && !operands_.empty(); ++i)
    if (given_[i].empty()) fail("expected " + operands_[std::min(i, operands_.size() - 1)] + ", got an empty text");
  if (given_.size() < operands_.size() && operands_[given_.size()].front() != '[')
    fail("expected " + operands_[given_.size()]);
  if (given_.size() > operands_.size() && !repeats()) fail("unexpected \"" + given_[operands_.size()] + "\"");
  return true;
}

void Options::parse_checked(const Arguments& arguments) {
  po::options_description all;
  all.add(list).add_options()("\n", po::value<std::vector<std::string>>(&given_));  // a name that cannot be typed
  const po::positional_options_description positions = po::positional_options_description().add("\n", -1);
  namespace style = po::command_line_style;
  const po::parsed_options parsed = po::command_line_parser(arguments)
                                        .options(all)
                                        .positional(positions)
                                        .style(style::unix_style & ~style::allow_guessing)
                                        .run();
  for (const po::option& each : parsed.options)
    if (each.position_key < 0) given_options_.push_back({each.string_key, each.value});
  po::variables_map values;
  po::store(parsed, values);
  po::notify(values);
}

void JobOptions::add_to(Options& options) {
  options.list.add_options()("set", po::value(&sets)->value_name("KEY=VALUE"),
                             "override a key of the job, such as updater.learning_rate=0.01 or "
                             "layer.hidden.size=64; may be repeated")(
      "threads", po::value(&threads)->value_name("N"), "compute threads; 0: all cores this process may use");
  plugins.add_to(options);
  options.list.add_options()("check", po::bool_switch(&check),
                             "check what plugins do: threads and lifetimes, and that native kernels write their own "
                             "results, all of them, and nothing else; slow")(
      "check-finite", po::bool_switch(&check_finite),
      "stop at the first value that is not a finite number, and name its layer; slow")(
      "require-portable", po::bool_switch(&require_portable),
      "refuse kernels whose bits may differ on another processor: the key arithmetic = \"portable-0\"");
}

void JobOptions::add_log_to(Options& options) {
  options.list.add_options()("quiet,q", po::bool_switch(&quiet), "print results and errors only")(
      "log-format", po::value(&log_format)->value_name("FORMAT"),
      "text (default), or json: one object per event and line on standard output");
}

void JobOptions::add_seed_to(Options& options) {
  options.list.add_options()("seed", po::value(&seed)->value_name("N"), "seed of everything random");
}

void JobOptions::apply_to(Job& job, const Options& options) const {
  if (threads != kNotGiven && (threads < 0 || threads > kMostThreads))
    options.fail("--threads: expected 0 to " + std::to_string(kMostThreads) + ", got " + std::to_string(threads));
  if (seed != kNotGiven && seed < 0) options.fail("--seed: expected at least 0, got " + std::to_string(seed));
  if (passes != kNotGiven && passes < 1) options.fail("--passes: expected at least 1, got " + std::to_string(passes));
  if (require_portable && job.arithmetic == TN_ARITHMETIC_NATIVE)
    options.fail("--require-portable: the job has arithmetic = \"native\"");
  if (threads >= 0) job.threads = threads;
  if (seed >= 0) job.seed = seed;
  if (passes > 0) job.training.passes = passes;
}

Job JobOptions::load(const Options& options, const std::string& path) const {
  Job job;
  apply_to(job, options);  // refuses them before the file is read
  job = load_job(path, sets);
  apply_to(job, options);
  return job;
}

Job JobOptions::without_job(const Options& options) const {
  Job job;
  apply_to(job, options);
  return job;
}

LogFormat JobOptions::format(const Options& options) const {
  if (log_format == "text") return LogFormat::kText;
  if (log_format == "json") return LogFormat::kJson;
  options.fail("--log-format: expected text or json, got \"" + log_format + "\"");
}

void PluginOptions::add_to(Options& options) {
  options.list.add_options()("plugins", po::value(&folders)->value_name("DIR"),
                             "search this folder and those below it for plugins, too; may be repeated")(
      "plugin-set", po::value(&set)->value_name("SET.toml")->notifier([&options](const std::string& file) {
        if (file.empty()) options.fail("--plugin-set: expected the name of a file, got an empty text");
      }),
      "use only plugins that this file admits (docs/plugin-sets.md)")(
      "no-installed-plugins", po::bool_switch(&not_installed), "leave out the plugins that are installed with Tenon");
}

namespace {

// Returns the folders of the environment, which need not exist.
std::vector<std::string> folders_of_environment() {
  std::vector<std::string> result;
  const char* const given = std::getenv("TENON_PLUGIN_PATH");
  std::istringstream list(given == nullptr ? "" : given);
  for (std::string folder; std::getline(list, folder, ':');)
    if (!folder.empty()) result.push_back(folder);
  return result;
}

// Whether another file with the id and the version of this one is used in its place.
bool is_same_version(const nlohmann::json& plugin, const nlohmann::json& all) {
  if (plugin.at("status") != "unused") return false;
  const nlohmann::json& manifest = plugin.at("manifest");
  return std::any_of(all.begin(), all.end(), [&](const nlohmann::json& other) {
    return (other.at("status") == "found" || other.at("status") == "loaded") &&
           other.at("manifest").at("id") == manifest.at("id") &&
           other.at("manifest").at("version") == manifest.at("version");
  });
}

void require_folder(const char* what, const std::string& folder) {
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error))
    throw Failure(kNotFound, std::string(what) + ": there is no folder \"" + folder + "\"");
}

}  // namespace

namespace {

// Prints the warnings of plugins, each text once: readers are opened several times.
class PluginLog {
 public:
  void write(int level, const std::string& text) {
    constexpr int kWarning = 2;
    const std::scoped_lock lock(mutex_);
    if (level >= kWarning && printed_.insert(text).second) std::cerr << "warning: " << shortened(plain(text)) << "\n";
  }

 private:
  std::mutex mutex_;
  std::set<std::string> printed_;
};

}  // namespace

Host PluginOptions::host(HostOptions options, const std::vector<std::string>& of_job) const {
  const auto log = std::make_shared<PluginLog>();
  options.log = [log](int level, const char* text) { log->write(level, text); };
  for (const std::string& folder : folders) require_folder("--plugins", folder);
  for (const std::string& folder : of_job) require_folder("key \"plugin_folders\"", folder);
  options.added_plugin_paths = folders;
  for (const std::vector<std::string>& more : {of_job, folders_of_environment()})
    options.added_plugin_paths.insert(options.added_plugin_paths.end(), more.begin(), more.end());
  options.installed_plugins = !not_installed;
  options.plugin_set = set;
  Host host(options);
  // Warns of refused plugins: a refusal is seldom intended. A set is a decision; what it refuses, `plugins list` shows.
  // Of two files with one id and version the caller may mean either.
  const nlohmann::json found = nlohmann::json::parse(host.plugins());
  constexpr size_t kMost = 8;
  size_t same = 0;
  for (const nlohmann::json& plugin : found) {
    const bool twice = is_same_version(plugin, found);
    if (twice && ++same > kMost) continue;
    if (twice || (plugin.at("status") == "refused" && set.empty()))
      std::cerr << "warning: " << shortened(plain(plugin.at("reason").get<std::string>())) << "\n";
  }
  if (same > kMost)
    std::cerr << "warning: likewise " << same - kMost << " more plugins, which 'tenon plugins list' shows\n";
  return host;
}

Host PluginOptions::host() const {
  HostOptions options;
  options.threads = 1;
  return host(std::move(options));
}

Host JobOptions::host(const Job& job, bool time_calls) const {
  HostOptions options;
  options.threads = static_cast<int>(job.threads);
  options.check = check ? TN_CHECK_ON : TN_CHECK_DEFAULT;
  options.check_finite = check_finite;
  options.arithmetic = require_portable ? uint32_t{TN_ARITHMETIC_PORTABLE} : job.arithmetic;
  options.time_calls = time_calls;
  return plugins.host(std::move(options), job.plugin_folders);
}

void Deadline::add_to(Options& options) {
  options.list.add_options()("deadline", po::value(&given)->value_name("SECONDS"),
                             "end with an error if the code of plugins takes longer (300); 0: never");
}

unsigned Deadline::seconds(const Options& options) const {
  constexpr int64_t kMost = 1'000'000;
  if (given < 0 || given > kMost)
    options.fail("--deadline: expected 0 to " + std::to_string(kMost) + ", got " + std::to_string(given));
  return static_cast<unsigned>(given);
}

}  // namespace tenon::cli

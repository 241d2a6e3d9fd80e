// SPDX-License-Identifier: Apache-2.0
#include "launch/words.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <string_view>

namespace tenon::launch {

namespace {

constexpr std::array<std::string_view, 8> kOfLauncher = {"processes", "servers", "nodes",   "comm",
                                                         "address",   "stall",   "silence", "restarts"};
constexpr std::array<std::string_view, 5> kPaths = {"save", "resume-from", "plugins", "plugin-set", "run"};

template <typename Names>
bool holds(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::vector<std::string> words_of(const cli::TrainCommand& command, const WordsOptions& options) {
  std::vector<std::string> result = {"train", options.job};
  for (const cli::GivenOption& option : command.options.given_options()) {
    if (holds(kOfLauncher, option.name)) continue;
    if (options.resume_from && (option.name == "resume" || option.name == "resume-from")) continue;
    if (option.values.empty()) result.push_back("--" + option.name);
    for (const std::string& value : option.values)
      result.push_back(
          "--" + option.name + "=" +
          (options.absolute && holds(kPaths, option.name) ? std::filesystem::absolute(value).string() : value));
  }
  if (options.servers > 0) result.push_back("--servers=" + std::to_string(options.servers));
  if (options.threads) result.push_back("--threads=" + std::to_string(*options.threads));
  if (options.shards) result.push_back("--set=shards=" + std::to_string(*options.shards));
  if (options.resume_from)
    result.push_back(options.resume_from->empty() ? "--resume" : "--resume-from=" + *options.resume_from);
  return result;
}

}  // namespace tenon::launch

// SPDX-License-Identifier: Apache-2.0
#include "launch/job.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <utility>

#include "host/cli/cli.h"

namespace tenon::launch {

namespace {

namespace fs = std::filesystem;
using cli::Failure;
using cli::Job;

std::string absolute(const std::string& path) { return fs::absolute(path).lexically_normal().string(); }

// Calls `use` with each text in a value that is a text or a list.
void for_texts(const cli::Node& node, const std::function<void(const std::string&)>& use) {
  if (const auto* text = node.get<std::string>()) use(*text);
  if (const auto* list = node.get<cli::Node::List>())
    for (const cli::Node& entry : *list) for_texts(entry, use);
}

// Adds the paths among those keys of a reader that say where its data is.
void add_data(const cli::Node& table, std::vector<LaunchedPath>& to) {
  const auto* members = table.get<cli::Node::Members>();
  if (members == nullptr) return;
  for (const auto& [key, value] : *members) {
    const bool is_place =
        std::find(std::begin(cli::kDataPlaces), std::end(cli::kDataPlaces), key) != std::end(cli::kDataPlaces);
    if (is_place)
      for_texts(value, [&, place = value.place + ": key \"" + key + "\" of a reader"](const std::string& path) {
        to.push_back({place, fs::path(path).lexically_normal().string()});
      });
    if (const auto* list = value.get<cli::Node::List>())
      for (const cli::Node& part : *list) add_data(part, to);
  }
}

// job: as below.
std::vector<LaunchedPath> data_of(const Job& job) {
  std::vector<LaunchedPath> result;
  for (const auto* reader : {&job.train, &job.test})
    if (*reader) add_data((*reader)->table, result);
  if (!job.init) return result;
  const auto add = [&](const std::string& key, const std::string& path) {
    if (!path.empty()) result.push_back({job.init->place + ": key \"" + key + "\"", path});
  };
  add("init", job.init->file);
  for (const cli::JobVectors& each : job.init->vectors)
    for (const std::string* const path : {&each.file, &each.words}) add("init.vectors." + each.name, *path);
  return result;
}

// job: read by a relative path, so that its absolute paths are those that are written as such.
std::optional<std::string> relative_path(const Job& job, const cli::TrainArguments& arguments) {
  const auto is_relative = [](const std::string& path) { return !path.empty() && !fs::path(path).is_absolute(); };
  if (job.save && arguments.save.empty() && !arguments.no_save && is_relative(*job.save)) return "key \"save\"";
  if (job.average_save && !arguments.no_save && is_relative(*job.average_save)) return "key \"average.save\"";
  if (job.checkpoint && is_relative(job.checkpoint->folder)) return "key \"checkpoint.folder\"";
  if (std::any_of(job.plugin_folders.begin(), job.plugin_folders.end(), is_relative)) return "key \"plugin_folders\"";
  for (const LaunchedPath& path : data_of(job))
    if (is_relative(path.text)) return path.place + ": \"" + path.text + "\"";
  return std::nullopt;
}

}  // namespace

LaunchedJob read_job(const cli::TrainCommand& command) {
  const std::string& named = command.options.operand(0);
  std::error_code error;
  if (fs::exists(named, error) && !fs::is_regular_file(named, error))
    throw Failure(cli::kBadConfig, "\"" + named + "\" is not a file, which each process could read");
  LaunchedJob result;
  result.path = absolute(named);
  const Job job = command.load();
  result.files = job.files;
  for (cli::JobFile& file : result.files) file.path = absolute(file.path);
  if (job.checkpoint) result.folder = absolute(job.checkpoint->folder);
  result.shards = job.shards;
  result.devices = static_cast<int64_t>(std::max<size_t>(1, job.devices.size()));
  result.states_threads = job.threads > 0;
  result.staleness = job.training.staleness;
  if (command.arguments.cluster.is_wanted) {
    const std::string name = fs::path(result.path).filename().string();
    result.data = data_of(cli::parse_job(result.files.front().text, name, command.arguments.common.sets));
  }
  if (!command.arguments.launch.nodes.empty()) {
    // Relative paths of a job are joined with its folder: where that is relative, so are they.
    const std::string near = fs::path(result.path).lexically_relative(fs::current_path()).string();
    result.relative = relative_path(cli::parse_job(result.files.front().text, near, command.arguments.common.sets),
                                    command.arguments);
  }
  return result;
}

}  // namespace tenon::launch

// SPDX-License-Identifier: Apache-2.0
#include "launch/pod/result_files.h"

namespace tenon::launch {

namespace {

namespace fs = std::filesystem;

std::optional<fs::file_time_type> time_of(const fs::path& path) {
  std::error_code error;
  const auto time = fs::last_write_time(path, error);
  return error || !fs::is_regular_file(path, error) ? std::nullopt : std::optional(time);
}

}  // namespace

void ResultFiles::add(const char* what, const std::string& path) {
  if (!path.empty()) files_.push_back({what, fs::absolute(path), time_of(path)});
}

void ResultFiles::add_of(const cli::TrainCommand& command) {
  const cli::Job job = command.load();
  const cli::TrainArguments& arguments = command.arguments;
  if (arguments.no_save) return;
  const std::string save = arguments.save.empty() ? job.save.value_or("") : arguments.save;
  add("save", save);
  if (!save.empty()) add("partial", save + ".partial");
  add("average", job.average_save.value_or(""));
}

nlohmann::json ResultFiles::written() const {
  nlohmann::json files = nlohmann::json::array();
  for (const File& file : files_)
    if (const auto time = time_of(file.path); time && time != file.time)
      files.push_back({{"what", file.what}, {"path", file.path.string()}, {"bytes", fs::file_size(file.path)}});
  return files;
}

}  // namespace tenon::launch

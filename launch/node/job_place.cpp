// SPDX-License-Identifier: Apache-2.0
#include "launch/node/job_place.h"

#include <fstream>
#include <iterator>

#include "base/files.h"
#include "host/cli/cli.h"

namespace tenon::launch {

namespace {

namespace fs = std::filesystem;
using cli::Failure;

std::string stored(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

fs::path place_job(const nlohmann::json& job, const fs::path& folder) {
  fs::path path = job.at("path").get<std::string>();
  std::error_code error;
  if (fs::exists(path, error)) {
    for (const nlohmann::json& file : job.at("files"))
      if (stored(file.at("path").get<std::string>()) != file.at("text").get<std::string>())
        throw Failure(cli::kBadConfig, file.at("path").get<std::string>() + " differs from that of the launcher");
    return path;
  }
  if (job.contains("relative"))
    throw Failure(cli::kBadConfig, "there is no " + path.string() + ", and a copy elsewhere would not do: " +
                                       job["relative"].get<std::string>() + " is relative to its folder");
  for (const nlohmann::json& file : job.at("files")) {
    const fs::path relative = fs::path(file.at("path").get<std::string>()).lexically_relative(path.parent_path());
    const fs::path copy = (folder / relative).lexically_normal();
    fs::create_directories(copy.parent_path(), error);
    std::ofstream out(copy, std::ios::binary);
    out << file.at("text").get<std::string>();
    if (!out.flush()) throw Failure(cli::kIo, "cannot write \"" + copy.string() + "\"");
  }
  return folder / path.filename();
}

}  // namespace tenon::launch

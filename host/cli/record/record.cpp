// SPDX-License-Identifier: Apache-2.0
#include "host/cli/record/record.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/files.h"
#include "host/cli/cli.h"

namespace tenon::cli {

namespace fs = std::filesystem;
using nlohmann::json;

std::string record_path(const std::string& folder) { return (fs::path(folder) / kRecordFile).string(); }

json read_record(const std::string& folder) {
  const std::string path = record_path(folder);
  std::error_code unknown;
  if (!fs::exists(path, unknown))
    throw Failure(kNotFound, folder + ": has no " + kRecordFile + ", which 'tenon train --run' writes");
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) throw Failure(kIo, path + ": cannot be read");
  json record = json::parse(text, nullptr, false);
  if (!record.is_object() || !record.contains("tenon_record") || !record.at("tenon_record").is_number_integer())
    throw Failure(kBadData, path + ": is not the record of a training");
  if (const int64_t format = record.at("tenon_record"); format != kRecordFormat)
    throw Failure(kBadData, path + ": a record of format " + std::to_string(format) + ", which this version (" +
                                TENON_VERSION + ") does not know; it reads format " + std::to_string(kRecordFormat));
  return record;
}

void write_record(const std::string& folder, const json& record) {
  const std::string path = record_path(folder), written = path + ".new";
  const auto refuse = [&] {
    const std::string why = std::strerror(errno);
    std::error_code ignored;
    fs::remove(written, ignored);
    throw Failure(kIo, path + ": cannot be written: " + why);
  };
  base::Descriptor file(base::uninterrupted(
      [&] { return ::open(written.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666); }));
  const std::string text = record.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
  if (file.get() < 0 || !base::write_all(file.get(), text) || ::fsync(file.get()) != 0 || file.close() != 0) refuse();
  if (std::rename(written.c_str(), path.c_str()) != 0 || !base::sync_folder(folder)) refuse();
}

}  // namespace tenon::cli

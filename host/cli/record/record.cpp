// SPDX-License-Identifier: Apache-2.0
#include "host/cli/record/record.h"

#include <filesystem>
#include <fstream>
#include <iterator>

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
  replace_file(record_path(folder), record.dump(1, ' ', false, json::error_handler_t::replace) + "\n");
}

}  // namespace tenon::cli

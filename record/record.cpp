// SPDX-License-Identifier: Apache-2.0
#include "record/record.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <vector>

#include "base/files.h"
#include "base/sha256.h"
#include "base/xxh3.h"

namespace tenon::record {

namespace fs = std::filesystem;
using nlohmann::json;

std::string record_path(const std::string& folder) { return (fs::path(folder) / kRecordFile).string(); }

json read_record(const Surroundings& surroundings, const std::string& folder) {
  const std::string path = record_path(folder);
  std::error_code unknown;
  if (!fs::exists(path, unknown))
    surroundings.refuse(Fault::kMissing, folder + ": has no " + kRecordFile + ", which 'tenon train --run' writes");
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) surroundings.refuse(Fault::kIo, path + ": cannot be read");
  json record = json::parse(text, nullptr, false);
  if (!record.is_object() || !record.contains("tenon_record") || !record.at("tenon_record").is_number_integer())
    surroundings.refuse(Fault::kBadData, path + ": is not the record of a training");
  if (const int64_t format = record.at("tenon_record"); format != kRecordFormat)
    surroundings.refuse(Fault::kBadData, path + ": a record of format " + std::to_string(format) +
                                             ", which this version (" + surroundings.version +
                                             ") does not know; it reads format " + std::to_string(kRecordFormat));
  return record;
}

void write_record(const Surroundings& surroundings, const std::string& folder, const json& record) {
  surroundings.replace(record_path(folder), record.dump(1, ' ', false, json::error_handler_t::replace) + "\n");
}

void require_repeatable(const Surroundings& surroundings, const json& record, const std::string& folder) {
  const auto refuse = [&](const std::string& why) {
    surroundings.refuse(Fault::kOther, record_path(folder) + ": " + why);
  };
  const json& end = record.at("end");
  if (end.is_null() || end.at("reason") == "interrupted")
    refuse("the training has not ended; 'tenon train --resume --run' continues it");
  if (record.at("staleness") != 0) refuse("the results of the bounded mode depend on time, and cannot be repeated");
  for (const json& resume : record.at("resumes"))
    if (resume.at("changes") != "")
      refuse("the training was resumed with other values, and cannot be repeated in one go: " +
             resume.at("changes").get<std::string>());
}

json digest_of_file(const Surroundings& surroundings, const std::string& file, const std::string& path) {
  const auto refuse = [&](int code) {
    surroundings.refuse(code == ENOENT || code == ENOTDIR ? Fault::kMissing : Fault::kIo,
                        path + ": " + std::strerror(code));
  };
  const base::Descriptor opened(base::uninterrupted([&] { return ::open(file.c_str(), O_RDONLY | O_CLOEXEC); }));
  if (opened.get() < 0) refuse(errno);
  std::error_code unknown;
  const uint64_t stated = fs::file_size(file, unknown);
  constexpr uint64_t kLeast = 1 << 16, kMostBlocks = 1024;
  uint64_t block_bytes = kLeast;
  while (!unknown && stated / block_bytes >= kMostBlocks) block_bytes *= 2;
  base::Sha256 digest;
  std::vector<std::string> blocks;
  constexpr uint64_t kRead = 1 << 20;
  std::string buffer(kRead, '\0');
  std::optional<base::Xxh3> block;
  uint64_t bytes = 0;
  const auto end_block = [&] {
    if (block) blocks.push_back(block->finish());
    block.reset();
  };
  for (;;) {  // reads end where blocks do, which are multiples of a read
    const size_t most = std::min<uint64_t>(kRead, block_bytes - bytes % block_bytes);
    const auto count = base::uninterrupted([&] { return ::read(opened.get(), buffer.data(), most); });
    if (count < 0) refuse(errno);
    if (count == 0) break;
    if (!block) block.emplace();
    digest.update(buffer.data(), static_cast<uint64_t>(count));
    block->update(buffer.data(), static_cast<uint64_t>(count));
    bytes += static_cast<uint64_t>(count);
    if (bytes % block_bytes == 0) end_block();
  }
  end_block();
  return {{"bytes", bytes}, {"sha256", digest.finish()}, {"block_bytes", block_bytes}, {"blocks", blocks}};
}

}  // namespace tenon::record

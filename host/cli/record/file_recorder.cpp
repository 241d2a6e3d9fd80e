// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "host/cli/cli.h"
#include "host/cli/record/data.h"
#include "host/cli/record/record.h"
#include "host/cli/record/recorder.h"

namespace tenon::cli {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr size_t kMostDigests = 1000;
constexpr size_t kMostDigits = size_t{4} << 20;  // of all digests of single parameters
constexpr size_t kLeastDigests = 100;

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

RunPlace place_of(const json& entry) { return {entry.at("pass"), entry.at("batch")}; }

}  // namespace

FileRecorder::FileRecorder(std::string folder, int64_t every, std::vector<std::string> sets, bool resumes)
    : folder_(std::move(folder)),
      fixed_(every),
      sets_(std::move(sets)),
      resumes_(resumes),
      every_(every > 0 ? every : 1) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) throw Failure(kIo, "--run " + folder_ + ": cannot create the folder: " + error.message());
  const bool exists = fs::exists(record_path(folder_), error);
  if (exists && !resumes_)
    throw Failure(kIo, record_path(folder_) + " exists already and is not overwritten; --run names another folder");
  if (::access(folder_.c_str(), W_OK | X_OK) != 0)
    throw Failure(kIo, "--run " + folder_ + ": cannot write into the folder: " + std::strerror(errno));
}

// What the training is made of: the job and its data.
void FileRecorder::add_inputs() {
  const Job& job = training().job;
  const fs::path folder = base::folder_of(job.path);
  json files = json::array(), data = json::array();
  for (const JobFile& file : job.files)
    files.push_back(
        {{"path", fs::path(file.path).lexically_normal().lexically_relative(folder.lexically_normal()).string()},
         {"text", file.text}});
  std::error_code unknown;
  const fs::path from = fs::weakly_canonical(folder_, unknown), to = fs::weakly_canonical(folder, unknown);
  record["job"] = {{"folder", to.lexically_relative(from).string()}, {"files", files}, {"set", sets_}};
  const JobData all = data_of(job);
  for (const DataFile& each : all.files) {
    json entry = digest_of_file(each.file, each.path);
    entry["key"] = each.key;
    entry["path"] = each.path;
    data.push_back(std::move(entry));
  }
  record["data"] = {{"files", std::move(data)}, {"unknown", all.unknown}};
}

// Keeps what the record in the folder has of the time before the place from which the training resumes.
void FileRecorder::continue_record(const Event& event) {
  json before = json::object();
  std::error_code unknown;
  if (fs::exists(record_path(folder_), unknown)) before = read_record(folder_);
  if (!before.contains("parameters") || before.at("parameters") != record.at("parameters"))
    throw Failure(kBadConfig, record_path(folder_) + ": is not the record of the training that resumes");
  for (const char* const list : {"digests", "curves", "resumes"})
    for (const json& entry : before.at(list)) {
      if (place_of(entry) > place()) continue;
      const bool is_other = place_of(entry) == place() && entry.contains("xxh3") && training().is_whole &&
                            entry.at("xxh3") != digest().at("xxh3");
      if (is_other)
        throw Failure(kBadConfig, record_path(folder_) + ": the checkpoint has other parameters than the record");
      record[list].push_back(entry);
    }
  record["began"] = before.at("began");
  record["resumes"].push_back({{"pass", place().pass}, {"batch", place().batch}, {"changes", event.changes()}});
}

void FileRecorder::begun(Event& event) {
  add_inputs();
  if (!event.checkpoint().empty()) continue_record(event);
  write_record(folder_, record);
  written_ = seconds();
}

bool FileRecorder::is_due(const RunPlace& place) {
  const bool begins = place == RunPlace{};
  return begins || ++updates_ % every_ == 0;
}

void FileRecorder::take(Event& /*event*/, json digest) {
  json& kept = record["digests"];
  kept.push_back(std::move(digest));
  const size_t digits = std::max<size_t>(1, kept.back().at("each").get_ref<const std::string&>().size());
  const size_t most = std::clamp(kMostDigits / digits, kLeastDigests, kMostDigests);
  if (fixed_ > 0 || kept.size() <= most) return;
  json fewer = json::array();  // the first, of the values before the training, and every other one behind it
  for (size_t i = 0; i < kept.size(); i += 2) fewer.push_back(std::move(kept[i]));
  kept = std::move(fewer);
  every_ *= 2;
}

// A checkpoint may be resumed from at any time; without one, little is lost.
void FileRecorder::reached(int32_t what) {
  constexpr double kEvery = 2;  // seconds
  if (what != TN_CHECKPOINT && seconds() - written_ < kEvery) return;
  write_record(folder_, record);
  written_ = seconds();
}

void FileRecorder::ended() { write_record(folder_, record); }

}  // namespace tenon::cli

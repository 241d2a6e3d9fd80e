// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "record/recorder.h"

namespace tenon::record {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr size_t kMostDigests = 1000;
constexpr size_t kMostDigits = size_t{4} << 20;  // of all digests of single parameters
constexpr size_t kLeastDigests = 100;

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

RunPlace place_of(const json& entry) { return {entry.at("pass"), entry.at("batch")}; }

}  // namespace

FileRecorder::FileRecorder(Surroundings surroundings, std::string folder, const std::string& option, int64_t every,
                           bool resumes)
    : Recorder(std::move(surroundings)),
      folder_(std::move(folder)),
      fixed_(every),
      resumes_(resumes),
      every_(every > 0 ? every : 1) {
  const auto refuse = [&](const std::string& why) {
    this->surroundings().refuse(Fault::kIo, option + " " + folder_ + ": " + why);
  };
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) refuse("cannot create the folder: " + error.message());
  const bool exists = fs::exists(record_path(folder_), error);
  if (exists && !resumes_)
    this->surroundings().refuse(Fault::kIo, record_path(folder_) + " exists already and is not overwritten; " + option +
                                                " names another folder");
  if (::access(folder_.c_str(), W_OK | X_OK) != 0)
    refuse(std::string("cannot write into the folder: ") + std::strerror(errno));
}

// Keeps what the record in the folder has of the time before the place from which the training resumes.
void FileRecorder::continue_record(const RecordedEvent& event) {
  const auto refuse = [&](const char* why) { surroundings().refuse(Fault::kOther, record_path(folder_) + why); };
  json before = json::object();
  std::error_code unknown;
  if (fs::exists(record_path(folder_), unknown)) before = read_record(surroundings(), folder_);
  if (!before.contains("parameters") || before.at("parameters") != record.at("parameters"))
    refuse(": is not the record of the training that resumes");
  continue_data(std::nullopt);
  for (const char* const list : {"digests", "curves", "resumes"})
    for (const json& entry : before.at(list)) {
      if (place_of(entry) > place()) continue;
      const bool is_here = place_of(entry) == place();
      const bool is_other =
          is_here && entry.contains("xxh3") && training().is_whole && entry.at("xxh3") != digest().at("xxh3");
      if (is_other) refuse(": the checkpoint has other parameters than the record");
      if (is_here && entry.contains("data")) continue_data(entry.at("data"));
      record[list].push_back(entry);
    }
  record["began"] = before.at("began");
  record["resumes"].push_back({{"pass", place().pass}, {"batch", place().batch}, {"changes", event.changes}});
}

void FileRecorder::begun(const RecordedEvent& event) {
  record.update(training().inputs(folder_));
  if (!event.checkpoint.empty()) continue_record(event);
  write_record(surroundings(), folder_, record);
  written_ = seconds();
}

bool FileRecorder::is_due(const RunPlace& place) {
  const bool begins = place == RunPlace{};
  return begins || ++updates_ % every_ == 0;
}

void FileRecorder::take(json digest) {
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
void FileRecorder::reached(Happening what) {
  constexpr double kEvery = 2;  // seconds
  if (what != Happening::kCheckpoint && seconds() - written_ < kEvery) return;
  write_record(surroundings(), folder_, record);
  written_ = seconds();
}

void FileRecorder::ended() { write_record(surroundings(), folder_, record); }

}  // namespace tenon::record

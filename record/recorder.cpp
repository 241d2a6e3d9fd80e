// SPDX-License-Identifier: Apache-2.0
#include "record/recorder.h"

#include <cmath>
#include <ctime>
#include <filesystem>
#include <iterator>

#include "base/processor.h"
#include "base/xxh3.h"
#include "record/software.h"

namespace tenon::record {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json number(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

json numbers(const std::vector<std::pair<std::string, double>>& values) {
  json result = json::object();
  for (const auto& [name, value] : values) result[name] = number(value);
  return result;
}

const char* reason_name(uint32_t reason) {
  static constexpr const char* kNames[] = {"none", "passes", "handler", "interrupted", "early"};
  return reason < std::size(kNames) ? kNames[reason] : kNames[0];
}

// "2026-12-01T10:00:00Z"
std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm parts = {};
  char text[32];
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &parts)));
}

}  // namespace

void Recorder::begin(RecordedTraining training) {
  training_ = std::move(training);
  json parameters = json::array();
  for (const RecordedParameter& each : training_.parameters)
    parameters.push_back({{"name", each.name}, {"shape", each.shape}});
  record = {{"tenon_record", kRecordFormat},
            {"began", now()},
            {"processor", base::processor_text()},
            {"parameters", std::move(parameters)},
            {"digests", json::array()},
            {"curves", json::array()},
            {"resumes", json::array()},
            {"models", json::array()},
            {"end", nullptr}};
  record.update(training_.members);
}

void Recorder::read(const std::string& digest) {
  if (!data_) return;
  base::Xxh3 hash;
  hash.update(data_->data(), data_->size());
  hash.update(digest.data(), digest.size());
  data_ = hash.finish();
}

// What only the compiled training says.
void Recorder::describe(const json& machine) {
  record["plugins"] = json::array();
  add_loaded_plugins(surroundings_, training_.plugins(), record["plugins"]);
  record["device"] = machine.at("device");
  record["compute"] = machine.at("compute");
  record["arithmetic"]["portable"] = machine.at("portable");
}

void Recorder::tell(const RecordedEvent& event) {
  switch (event.what) {
    case Happening::kBegin:
      place_ = {event.pass, event.batch};
      describe(event.machine);
      begun(event);
      break;
    case Happening::kIteration:
      place_ = {event.pass, event.batch + 1};
      break;
    case Happening::kPass:
      place_ = {event.pass + 1, 0};
      add_curve("pass", event);  // with a digest: the place may be that of a checkpoint
      break;
    case Happening::kTest:
      add_curve("test", event);
      break;
    case Happening::kCheckpoint:
      reached(event.what);
      break;
    case Happening::kEnd:
      add_loaded_plugins(surroundings_, training_.plugins(), record["plugins"]);  // some are loaded when first asked
      record["end"] = {
          {"reason", reason_name(event.reason)}, {"pass", place_.pass}, {"batch", place_.batch}, {"digest", digest()}};
      break;
    case Happening::kOther:
      break;
  }
  const bool begins = event.what == Happening::kBegin && event.checkpoint.empty();
  const bool changed = begins || event.what == Happening::kIteration;
  if (changed && training_.is_whole && is_due(place_)) take(digest());
}

void Recorder::add_curve(const char* kind, const RecordedEvent& event) {
  json entry = {{"kind", kind},
                {"pass", place_.pass},
                {"batch", place_.batch},
                {"samples", event.samples},
                {"cost", number(event.cost)},
                {"metrics", numbers(event.metrics)},
                {"seconds", number(event.seconds)},
                {"learning_rate", number(event.scheduled_rate)}};
  if (event.what == Happening::kPass && training_.is_whole) entry["xxh3"] = digest().at("xxh3");
  if (!event.costs.empty()) entry["costs"] = numbers(event.costs);
  record["curves"].push_back(std::move(entry));
  reached(event.what);
}

json Recorder::digest() const {
  if (!training_.is_whole) return nullptr;
  base::Xxh3 all;
  std::string each;
  constexpr size_t kShort = 8;  // digits
  for (size_t i = 0; i < training_.parameters.size(); ++i) {
    const RecordedValues values = training_.values(i);
    base::Xxh3 hash;
    hash.update(values.data, values.bytes);
    const std::string digits = hash.finish();
    all.update(digits.data(), digits.size());
    each += digits.substr(0, kShort);
  }
  json result = {{"pass", place_.pass}, {"batch", place_.batch}, {"xxh3", all.finish()}, {"each", each}};
  if (data_ && !data_->empty()) result["data"] = *data_;
  return result;
}

void Recorder::end(int exit, const std::vector<RecordedModel>& models, const std::optional<RecordedTest>& tested) {
  for (const RecordedModel& model : models) {
    const json digest = digest_of_file(surroundings_, model.file, model.file);
    record["models"].push_back({{"key", model.key},
                                {"file", fs::path(model.file).filename().string()},
                                {"bytes", digest.at("bytes")},
                                {"sha256", digest.at("sha256")}});
  }
  if (record["end"].is_null()) return;  // it was interrupted before it began
  if (exit >= 0) record["end"]["exit"] = exit;
  if (tested)
    record["end"]["test"] = {
        {"samples", tested->samples}, {"cost", number(tested->cost)}, {"metrics", numbers(tested->metrics)}};
  record["ended"] = now();
  ended();
}

}  // namespace tenon::record

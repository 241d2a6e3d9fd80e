// SPDX-License-Identifier: Apache-2.0
#include "host/cli/record/recorder.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <map>
#include <tenon/tenon_topology.hpp>
#include <utility>

#include "base/processor.h"
#include "base/xxh3.h"
#include "host/cli/console.h"
#include "host/cli/external.h"
#include "host/cli/record/data.h"
#include "host/cli/record/record.h"
#include "host/cli/record/software.h"

namespace tenon::cli {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json numbers(const std::vector<Metric>& metrics) {
  json result = json::object();
  for (const Metric& metric : metrics) result[metric.name] = number(metric.value);
  return result;
}

const char* arithmetic_name(uint32_t arithmetic) {
  if (arithmetic == TN_ARITHMETIC_PORTABLE) return "portable-0";
  return arithmetic == TN_ARITHMETIC_NATIVE ? "native" : "default";
}

const char* reason_name(uint32_t reason) {
  static const std::map<uint32_t, const char*> names = {{TN_REASON_PASSES, "passes"},
                                                        {TN_REASON_HANDLER, "handler"},
                                                        {TN_REASON_CANCEL, "interrupted"},
                                                        {TN_REASON_EARLY, "early"}};
  const auto name = names.find(reason);
  return name == names.end() ? "none" : name->second;
}

// "2026-12-01T10:00:00Z"
std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm parts = {};
  char text[32];
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &parts)));
}

}  // namespace

Recorder::Recorder() = default;

void Recorder::begin(const RecordedTraining& training) {
  training_ = &training;
  const Job& job = training.job;
  json parameters = json::array();
  for (const ParameterInfo& each : entries(training.parameters)) {
    names_.push_back(each.name);
    parameters.push_back({{"name", each.name}, {"shape", each.shape}});
  }
  const int64_t shards = job.shards == 0 && training.trainers > 1 ? training.trainers : job.shards;
  record = {{"tenon_record", kRecordFormat},
            {"began", now()},
            {"processor", base::processor_text()},
            {"threads", job.threads},
            {"processes", training.processes},
            {"seed", job.seed},
            {"passes", job.training.passes},
            {"test_every", job.test_every},
            {"staleness", job.training.staleness},
            {"shards", shards},
            {"arithmetic", {{"asked", arithmetic_name(job.arithmetic)}}},
            {"parameters", std::move(parameters)},
            {"digests", json::array()},
            {"curves", json::array()},
            {"resumes", json::array()},
            {"models", json::array()},
            {"end", nullptr}};
  record.update(software());
}

// What only the compiled training says.
void Recorder::describe(const Event& event) {
  record["plugins"] = json::array();
  add_loaded_plugins(training_->host, record["plugins"]);
  const json machine = json::parse(event.machine().plan());
  record["device"] = machine.at("device");
  record["compute"] = machine.at("compute");
  record["arithmetic"]["portable"] = machine.at("portable");
}

void Recorder::tell(Event& event) {
  switch (event.kind()) {
    case TN_BEGIN_TRAINING:
      place_ = {event.pass(), event.batch()};
      describe(event);
      begun(event);
      break;
    case TN_END_ITERATION:
      place_ = {event.pass(), event.batch() + 1};
      break;
    case TN_END_PASS:
      place_ = {event.pass() + 1, 0};
      add_curve("pass", event);  // with a digest: the place may be that of a checkpoint
      break;
    case TN_TEST:
      add_curve("test", event);
      break;
    case TN_CHECKPOINT:
      reached(event.kind());
      break;
    case TN_END_TRAINING:
      add_loaded_plugins(training_->host, record["plugins"]);  // some are loaded when they are first asked
      record["end"] = {{"reason", reason_name(event.reason())},
                       {"pass", place_.pass},
                       {"batch", place_.batch},
                       {"digest", digest()}};
      break;
    default:
      break;
  }
  const bool begins = event.kind() == TN_BEGIN_TRAINING && event.checkpoint().empty();
  const bool changed = begins || event.kind() == TN_END_ITERATION;
  if (changed && training_->is_whole && is_due(place_)) take(event, digest());
}

void Recorder::add_curve(const char* kind, const Event& event) {
  json entry = {{"kind", kind},
                {"pass", place_.pass},
                {"batch", place_.batch},
                {"samples", event.samples()},
                {"cost", number(event.cost())},
                {"metrics", numbers(event.metrics())},
                {"seconds", number(event.seconds())},
                {"learning_rate", number(event.scheduled_rate())}};
  if (event.kind() == TN_END_PASS && training_->is_whole) entry["xxh3"] = digest().at("xxh3");
  if (!event.costs().empty()) entry["costs"] = numbers(event.costs());
  record["curves"].push_back(std::move(entry));
  reached(event.kind());
}

json Recorder::digest() const {
  if (!training_->is_whole) return nullptr;
  base::Xxh3 all;
  std::string each;
  constexpr size_t kShort = 8;  // digits
  for (const std::string& name : names_) {
    const Array values = training_->parameters.get(name);
    base::Xxh3 hash;
    hash.update(values.data, static_cast<uint64_t>(values.count()) * tn_dtype_bytes(values.dtype));
    const std::string digits = hash.finish();
    all.update(digits.data(), digits.size());
    each += digits.substr(0, kShort);
  }
  return {{"pass", place_.pass}, {"batch", place_.batch}, {"xxh3", all.finish()}, {"each", each}};
}

void Recorder::end(int exit, const std::vector<RecordedModel>& models, const std::optional<TestResult>& tested) {
  for (const RecordedModel& model : models) {
    const json digest = digest_of_file(model.file, model.file);
    record["models"].push_back({{"key", model.key},
                                {"file", fs::path(model.file).filename().string()},
                                {"bytes", digest.at("bytes")},
                                {"sha256", digest.at("sha256")}});
  }
  if (record["end"].is_null()) return;  // it was interrupted before it began
  record["end"]["exit"] = exit;
  if (tested)
    record["end"]["test"] = {
        {"samples", tested->samples}, {"cost", number(tested->cost)}, {"metrics", numbers(tested->metrics)}};
  record["ended"] = now();
  ended();
}

}  // namespace tenon::cli

// SPDX-License-Identifier: Apache-2.0
#include "host/api/training_record.h"

#include <utility>

#include "host/training/data/data_digest.h"
#include "record/comparison.h"
#include "record/software.h"

namespace tenon::host {

namespace {

using nlohmann::json;
using record::Fault;
using record::Happening;

tn_status status_of(Fault fault) {
  switch (fault) {
    case Fault::kMissing:
      return TN_NOT_FOUND;
    case Fault::kIo:
      return TN_IO;
    case Fault::kBadData:
      return TN_BAD_DATA;
    default:
      return TN_INVALID;
  }
}

record::Surroundings surroundings_of(FileSystem& files, const char* option) {
  return {TENON_VERSION,
          [option](Fault fault, const std::string& message) {
            const bool differs = fault == Fault::kDiffers;
            fail(status_of(fault), SubjectName{option}, differs ? "the training differs from its record: " : "",
                 message);
          },
          [&files](const std::string& path, const std::string& text) {
            const std::unique_ptr<FileSystem::Output> file = files.replace(path);
            file->write(text.data(), text.size());
            file->commit();
          }};
}

bool is_stated(const char* option) { return option != nullptr && *option != '\0'; }

std::vector<std::pair<std::string, double>> pairs(const std::vector<MetricValue>& metrics) {
  std::vector<std::pair<std::string, double>> result;
  for (const MetricValue& metric : metrics) result.emplace_back(metric.name, metric.value);
  return result;
}

Happening happening(EventKind kind) {
  switch (kind) {
    case EventKind::kBeginTraining:
      return Happening::kBegin;
    case EventKind::kEndIteration:
      return Happening::kIteration;
    case EventKind::kEndPass:
      return Happening::kPass;
    case EventKind::kTest:
      return Happening::kTest;
    case EventKind::kCheckpoint:
      return Happening::kCheckpoint;
    case EventKind::kEndTraining:
      return Happening::kEnd;
    default:
      return Happening::kOther;
  }
}

}  // namespace

TrainingRecord::TrainingRecord(Host& host, const tn_train_options& options, const TrainingCall& call)
    : host_(host), options_(options), call_(call) {
  if (call.team != nullptr)
    fail(TN_UNSUPPORTED, SubjectName{"options.team"},
         "options.run and options.rerun: a training of a team of the application keeps no record");
  if (is_stated(options.run) && is_stated(options.rerun))
    fail(TN_INVALID, SubjectName{"options.rerun"},
         "options.rerun: a training is recorded or compared; run is set, too");
  if (is_stated(options.run)) {
    const bool resumes = options.checkpoint != nullptr && options.checkpoint->start != TN_START_FRESH;
    recorder_ = std::make_unique<record::FileRecorder>(surroundings_of(*host.files, "options.run"),
                                                       api::string(options.run, "options.run"), "options.run",
                                                       options.run_every, resumes);
    return;
  }
  const std::string folder = api::string(options.rerun, "options.rerun");
  const record::Surroundings surroundings = surroundings_of(*host.files, "options.rerun");
  try {
    before_ = record::read_record(surroundings, folder);
    record::require_repeatable(surroundings, before_, folder);
    if (before_.value("training", json()).is_null())
      surroundings.refuse(Fault::kOther, record::record_path(folder) + ": is of a job, which 'tenon rerun' repeats");
    recorder_ = std::make_unique<record::Comparison>(surroundings, before_, false);
  } catch (const json::exception& error) {
    surroundings.refuse(Fault::kBadData, record::record_path(folder) + ": is not a whole record: " + error.what());
  }
}

void TrainingRecord::begin(json training) {
  ParameterSet& set = *call_.parameters->set;
  record::RecordedTraining recorded;
  const char* const asked = host_.checks.portable ? "portable-0" : "default";
  recorded.members = {{"library", record::software(surroundings_of(*host_.files, "libtenon"), tn_version(),
                                                   record::file_of(reinterpret_cast<const void*>(&tn_version)))},
                      {"threads", host_.pool.threads()},
                      {"processes", 1},
                      {"seed", options_.seed},
                      {"passes", options_.passes},
                      {"test_every", 0},
                      {"staleness", 0},
                      {"shards", options_.shards},
                      {"arithmetic", {{"asked", host_.is_native() ? "native" : asked}}},
                      {"training", std::move(training)}};
  for (const ParameterEntry& entry : set.entries()) recorded.parameters.push_back({entry.name, entry.shape});
  recorded.values = [&set](size_t i) {
    const ParameterEntry& entry = set.entries()[i];
    return record::RecordedValues{set.values(entry), entry.count * sizeof(float)};
  };
  recorded.plugins = [&host = host_] { return host.registry.list(); };
  recorded.inputs = [](const std::string& /*folder*/) {
    return json{{"job", nullptr}, {"data", {{"files", json::array()}, {"unknown", json::array()}}}};
  };
  recorder_->begin(std::move(recorded));
}

void TrainingRecord::tell(const Event& event) {
  if (event.kind == EventKind::kBeginIteration) recorder_->read(digest_of(call_.request->minibatch));
  record::RecordedEvent recorded = {happening(event.kind),
                                    event.pass,
                                    event.batch,
                                    event.samples,
                                    event.cost,
                                    event.seconds,
                                    event.scheduled_rate,
                                    pairs(event.metrics),
                                    pairs(event.costs),
                                    event.checkpoint,
                                    event.changes,
                                    static_cast<uint32_t>(event.reason),
                                    {}};
  if (recorded.what == Happening::kBegin) recorded.machine = call_.machine->machine->describe();
  if (recorded.what != Happening::kOther) recorder_->tell(recorded);
}

void TrainingRecord::end() {
  recorder_->end(-1, {}, std::nullopt);
  const auto* const comparison = dynamic_cast<const record::Comparison*>(recorder_.get());
  if (comparison != nullptr && !comparison->difference().empty())
    surroundings_of(*host_.files, "options.rerun").refuse(Fault::kDiffers, comparison->difference());
}

std::unique_ptr<TrainingRecord> training_record(Host& host, const tn_train_options& options, const TrainingCall& call) {
  if (!is_stated(options.run) && !is_stated(options.rerun)) {
    if (options.run_every != 0)
      fail(TN_INVALID, SubjectName{"options.run_every"}, "options.run_every is ", options.run_every,
           " without options.run");
    return nullptr;
  }
  if (options.run_every < 0)
    fail(TN_INVALID, SubjectName{"options.run_every"}, "options.run_every is ", options.run_every,
         "; expected at least 0");
  return std::make_unique<TrainingRecord>(host, options, call);
}

}  // namespace tenon::host

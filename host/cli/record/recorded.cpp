// SPDX-License-Identifier: Apache-2.0
#include "host/cli/record/recorded.h"

#include <filesystem>
#include <tenon/tenon_topology.hpp>
#include <utility>

#include "base/files.h"
#include "host/cli/cli.h"
#include "host/cli/external.h"
#include "host/cli/record/data.h"
#include "record/software.h"

namespace tenon::cli {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using record::Fault;
using record::Happening;

const char* arithmetic_name(uint32_t arithmetic) {
  if (arithmetic == TN_ARITHMETIC_PORTABLE) return "portable-0";
  return arithmetic == TN_ARITHMETIC_NATIVE ? "native" : "default";
}

// Returns the path of the program `tenon`: this one, or that which runs it.
std::string program_file() {
  const fs::path own = this_program();
  std::error_code unknown;
  const fs::path beside = own.parent_path() / "tenon";
  return fs::exists(beside, unknown) ? beside.string() : own.string();
}

// What the training is made of: the job and its data. to: the folder of the record.
json inputs(const Job& job, const std::vector<std::string>& sets, const std::string& to) {
  const fs::path folder = base::folder_of(job.path);
  json files = json::array(), data = json::array();
  for (const JobFile& file : job.files)
    files.push_back(
        {{"path", fs::path(file.path).lexically_normal().lexically_relative(folder.lexically_normal()).string()},
         {"text", file.text}});
  std::error_code unknown;
  const fs::path from = fs::weakly_canonical(to, unknown), way = fs::weakly_canonical(folder, unknown);
  const JobData all = data_of(job);
  for (const DataFile& each : all.files) {
    json entry = record::digest_of_file(record_surroundings(), each.file, each.path);
    entry["key"] = each.key;
    entry["path"] = each.path;
    data.push_back(std::move(entry));
  }
  return {{"job", {{"folder", way.lexically_relative(from).string()}, {"files", files}, {"set", sets}}},
          {"data", {{"files", std::move(data)}, {"unknown", all.unknown}}}};
}

std::vector<std::pair<std::string, double>> pairs(const std::vector<Metric>& metrics) {
  std::vector<std::pair<std::string, double>> result;
  for (const Metric& metric : metrics) result.emplace_back(metric.name, metric.value);
  return result;
}

Happening happening(int kind) {
  switch (kind) {
    case TN_BEGIN_TRAINING:
      return Happening::kBegin;
    case TN_END_ITERATION:
      return Happening::kIteration;
    case TN_END_PASS:
      return Happening::kPass;
    case TN_TEST:
      return Happening::kTest;
    case TN_CHECKPOINT:
      return Happening::kCheckpoint;
    case TN_END_TRAINING:
      return Happening::kEnd;
    default:
      return Happening::kOther;
  }
}

}  // namespace

record::Surroundings record_surroundings() {
  return {TENON_VERSION,
          [](Fault fault, const std::string& message) {
            switch (fault) {
              case Fault::kMissing:
                throw Failure(kNotFound, message);
              case Fault::kIo:
                throw Failure(kIo, message);
              case Fault::kBadData:
                throw Failure(kBadData, message);
              default:
                throw Failure(kBadConfig, message);
            }
          },
          [](const std::string& path, const std::string& text) { replace_file(path, text); }};
}

record::RecordedTraining recorded(const JobTraining& training) {
  const Job& job = training.job;
  const record::Surroundings surroundings = record_surroundings();
  record::RecordedTraining result;
  result.members = {{"program", record::software(surroundings, TENON_VERSION, program_file())},
                    {"library", record::software(surroundings, tn_version(),
                                                 record::file_of(reinterpret_cast<const void*>(&tn_version)))},
                    {"threads", job.threads},
                    {"processes", training.processes},
                    {"seed", job.seed},
                    {"passes", job.training.passes},
                    {"test_every", job.test_every},
                    {"staleness", job.training.staleness},
                    {"shards", job.shards == 0 && training.trainers > 1 ? training.trainers : job.shards},
                    {"arithmetic", {{"asked", arithmetic_name(job.arithmetic)}}}};
  result.is_whole = training.is_whole;
  for (const ParameterInfo& each : entries(training.parameters)) result.parameters.push_back({each.name, each.shape});
  result.values = [parameters = training.parameters, list = result.parameters](size_t i) {
    const Array values = parameters.get(list[i].name);
    return record::RecordedValues{values.data, static_cast<uint64_t>(values.count()) * tn_dtype_bytes(values.dtype)};
  };
  result.plugins = [&host = training.host] { return json::parse(host.plugins()); };
  result.inputs = [&job, sets = training.sets](const std::string& folder) { return inputs(job, sets, folder); };
  return result;
}

record::RecordedEvent recorded(const Event& event) {
  record::RecordedEvent result = {happening(event.kind()),
                                  event.pass(),
                                  event.batch(),
                                  event.samples(),
                                  event.cost(),
                                  event.seconds(),
                                  event.scheduled_rate(),
                                  pairs(event.metrics()),
                                  pairs(event.costs()),
                                  event.checkpoint(),
                                  event.changes(),
                                  event.reason(),
                                  {}};
  if (result.what == Happening::kBegin) result.machine = json::parse(event.machine().plan());
  return result;
}

std::optional<record::RecordedTest> recorded(const std::optional<TestResult>& tested) {
  if (!tested) return std::nullopt;
  return record::RecordedTest{tested->samples, tested->cost, pairs(tested->metrics)};
}

}  // namespace tenon::cli

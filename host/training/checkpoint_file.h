// A checkpoint as a file: a model file with the states of the updater and the host's record beside the parameters.
// docs/checkpoints.md specifies it. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/files/model_file.h"
#include "core/topology.h"
#include "host/training/checkpoint_record.h"
#include "host/training/updater.h"

namespace tenon::host {

using namespace core;

// Writes a checkpoint. It appears under its name only when it is complete and on disk. averages: those of the
// parameters (averages.h), if there are any. groups: of the updaters beside the one of the record.
void write_checkpoint(FileSystem& files, const std::filesystem::path& path, const Topology& topology,
                      const ParameterSet& set, const std::vector<Updater::StateValues>& states,
                      const std::vector<Updater::StateValues>& averages, const CheckpointRecord& record,
                      const std::vector<UpdaterProgress>& groups = {});

// Writes a model file of a set with the parameters of `topology`.
void write_model_of(FileSystem& files, const std::filesystem::path& path, const Topology& topology,
                    const ParameterSet& set);

// An open checkpoint, whose checksum and record are checked. Errors are TN_BAD_DATA and name the file, the field or
// tensor, and what was expected.
class CheckpointFile final : public Updater::StateSource {
 public:
  CheckpointFile(FileSystem& files, std::filesystem::path path, const std::shared_ptr<Allocator>& allocator);

  [[nodiscard]] const CheckpointRecord& record() const { return record_; }
  [[nodiscard]] const nlohmann::json& run() const { return run_; }
  [[nodiscard]] const nlohmann::json& topology() const { return topology_; }
  // Reads the progress of the updater of a group, whose number begins with 1.
  [[nodiscard]] UpdaterProgress group(size_t number);
  // The states of the updater.
  [[nodiscard]] std::vector<Updater::StateValues> states() const override;
  void read(const Updater::StateValues& state) override { read(kState, state); }
  // Reads the values of one of the averages.
  void read_average(const Updater::StateValues& average) { read(kAverage, average); }
  // Reads the parameters, all at once: if it fails, the set is unchanged.
  void load(ParameterSet& set) const;

 private:
  [[nodiscard]] CheckpointRecord record_of(const std::string& tensor);
  static constexpr const char* kState = "state";  // kinds of tensors
  static constexpr const char* kAverage = "average";
  void read(const char* kind, const Updater::StateValues& state);
  [[nodiscard]] nlohmann::json parse(const char* what, const std::string& given) const;
  [[nodiscard]] std::shared_ptr<const Buffer> values_of(const std::string& name, const char* type,
                                                        const std::vector<int64_t>* shape);

  FileSystem& files_;
  std::filesystem::path path_;
  ModelFile header_;
  StoredTensors tensors_;
  CheckpointRecord record_;
  nlohmann::json run_, topology_;
};

// Returns the JSON of a topology without the names of integers, which are the reader's.
[[nodiscard]] nlohmann::json without_names(nlohmann::json topology);

}  // namespace tenon::host

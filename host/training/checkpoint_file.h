// A checkpoint as a file: a model file with the states of the updater and the host's record beside the parameters.
// docs/checkpoints.md specifies it. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/files/model_file.h"
#include "core/topology.h"
#include "host/training/checkpoint_record.h"
#include "host/training/updater.h"

namespace tenon::host {

using namespace core;

// What a checkpoint holds beside topology and parameters.
struct CheckpointContents {
  CheckpointRecord record;
  std::vector<Updater::StateValues> states;       // of the updaters
  std::vector<Updater::StateValues> averages;     // of the parameters (averages.h), if there are any
  std::vector<UpdaterProgress> groups;            // of the updaters beside the one of the record
  std::optional<CheckpointRecord> best;           // of the best measurement (best_values.h), if values of it are kept
  std::vector<Updater::StateValues> best_values;  // those
  std::string changes;                            // what resumes have changed so far, a line each; empty: nothing
  std::vector<ModelPart> parts;                   // the files with the rows of tables, written before
};

// Writes a checkpoint. It appears under its name only when it is complete and on disk.
void write_checkpoint(FileSystem& files, const std::filesystem::path& path, const Topology& topology,
                      const ParameterSet& set, const CheckpointContents& contents);

// Writes the part of a checkpoint with the rows that this process owns, and returns its checksum. states: those of the
// checkpoint.
[[nodiscard]] std::string write_checkpoint_part(FileSystem& files, const std::filesystem::path& path,
                                                const ParameterSet& set,
                                                const std::vector<Updater::StateValues>& states);

// Writes a model file of a set with the parameters of `topology`.
void write_model_of(FileSystem& files, const std::filesystem::path& path, const Topology& topology,
                    const ParameterSet& set);

// An open checkpoint, whose checksum and record are checked. Errors are TN_BAD_DATA and name the file, the field or
// tensor, and what was expected.
class CheckpointFile final : public Updater::StateSource {
 public:
  // blocks: of the rows of tables that will be read; only parts with these are checked.
  CheckpointFile(FileSystem& files, std::filesystem::path path, const std::shared_ptr<Allocator>& allocator,
                 const TableBlocks& blocks = {});

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
  // The record of the best measurement, if there is one, and one of its values.
  [[nodiscard]] std::optional<CheckpointRecord> best();
  void read_best(const Updater::StateValues& value) { read(kBest, value); }
  // What resumes had changed so far.
  [[nodiscard]] std::string changes() const;
  // Reads the parameters, all at once: if it fails, the set is unchanged.
  void load(ParameterSet& set) const;

 private:
  [[nodiscard]] CheckpointRecord record_of(const std::string& tensor);
  static constexpr const char* kState = "state";  // kinds of tensors
  static constexpr const char* kAverage = "average";
  static constexpr const char* kBest = "best";
  void read(const char* kind, const Updater::StateValues& state);
  [[nodiscard]] nlohmann::json parse(const char* what, const std::string& given) const;
  [[nodiscard]] const ModelTensor& tensor_of(const std::string& name, const char* type,
                                             const std::vector<int64_t>* shape) const;

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

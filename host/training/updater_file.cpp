// SPDX-License-Identifier: Apache-2.0
#include "host/training/updater_file.h"

#include <nlohmann/json.hpp>

#include "host/training/checkpoint_file.h"
#include "host/training/resume_check.h"

namespace tenon::host {

namespace {

constexpr const char* kUpdater = "updater";  // in the run of a checkpoint
constexpr const char* kStates = "states";

}  // namespace

void save_updater(FileSystem& files, const std::filesystem::path& path, Updater& updater,
                  const std::shared_ptr<ParameterSet>& set, const Topology& topology) {
  CheckpointRecord record;
  record.run = nlohmann::json{{kUpdater, updater.describe()}}.dump();
  record.updates = set->updates();
  record.steps = updater.steps(set);
  record.learning_rate = updater.learning_rate();
  write_checkpoint(files, path, topology, *set, updater.states(set), {}, record);
}

void load_updater(FileSystem& files, const std::filesystem::path& path, Updater& updater,
                  const std::shared_ptr<ParameterSet>& set) {
  CheckpointFile file(files, path, set->allocator());
  nlohmann::json stored = {{kStates, file.state_shapes()}}, present = {{kUpdater, updater.describe()}};
  if (file.run().contains(kUpdater)) stored[kUpdater] = file.run()[kUpdater];
  present[kStates] = nlohmann::json::object();
  for (const Updater::StateValues& state : updater.state_shapes(*set))
    present[kStates][state.state + "/" + state.parameter] = to_string(state.shape);
  check_same_run(path.string(), stored, present, false);
  const auto states = updater.read_states(set, [&](const Updater::StateValues& state) { file.read(state); });
  updater.adopt(states, file.record().steps, file.record().learning_rate);
  set->set_updates(file.record().updates);
}

}  // namespace tenon::host

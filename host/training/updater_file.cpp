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
  const auto shapes = [](const std::vector<Updater::StateValues>& states) {
    nlohmann::json result = nlohmann::json::object();
    for (const Updater::StateValues& state : states)
      result[state.state + "/" + state.parameter] = to_string(state.shape);
    return result;
  };
  nlohmann::json stored = nlohmann::json::object(), present = {{kUpdater, updater.describe()}};
  if (!updater.calls_application()) {  // whose states may be any
    stored[kStates] = shapes(file.states());
    present[kStates] = shapes(updater.state_shapes(set));
  }
  if (file.run().contains(kUpdater)) stored[kUpdater] = file.run()[kUpdater];
  check_same_run(path.string(), stored, present, false);
  const auto states = updater.read_states(set, file);
  updater.adopt(states, file.record().steps, file.record().learning_rate);
  set->set_updates(file.record().updates);
}

}  // namespace tenon::host

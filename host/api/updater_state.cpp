// The public C API: the state of updaters. SPDX-License-Identifier: Apache-2.0
#include <tenon/tenon_updater.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/nearest.h"
#include "host/api/api.h"
#include "host/training/checkpoint_file.h"
#include "host/training/resume_check.h"

namespace api = tenon::host::api;
using namespace tenon::host;

namespace {

std::shared_ptr<HeldParameters> with_values(Host& host, tn_parameters parameters) {
  std::shared_ptr<HeldParameters> held = host.parameters.at(parameters);
  if (!held->set->has_values()) fail(TN_MISUSE, "the parameters have no values, they were only declared");
  for (const ParameterEntry& entry : held->set->entries()) held->set->require_values(entry);
  return held;
}

Updater::StateValues state_of(Updater& updater, const std::shared_ptr<ParameterSet>& set, const std::string& state,
                              const std::string& parameter) {
  const ParameterEntry& entry = set->find(parameter);
  const std::string who = "updater \"" + updater.type() + "\"";
  if (entry.buffer)
    fail(TN_NOT_FOUND, ComponentName{who}, SubjectName{parameter}, "buffer \"", parameter, "\" has no states");
  std::vector<std::string> known;
  for (Updater::StateValues& values : updater.states(set)) {
    if (values.parameter != parameter) continue;
    if (values.state == state) return std::move(values);
    known.push_back(values.state);
  }
  fail(TN_NOT_FOUND, ComponentName{who}, SubjectName{state}, "no state \"", state, "\"",
       tenon::base::suggestion(state, known));
}

// The state of one updater as a file: a checkpoint without the place of a training, for loops that an application
// writes itself.

constexpr const char* kUpdater = "updater";  // in the run of a checkpoint
constexpr const char* kStates = "states";

// Throws TN_UNSUPPORTED naming a table of which other processes have states.
void require_all_states(const ParameterSet& set) {
  if (set.owned() == nullptr) return;
  const std::string& table = set.owned()->entries().front().name;
  fail_parameter(TN_UNSUPPORTED, table, "table \"", table,
                 "\": the states of updaters for its rows lie with the processes of a team; let a training write and "
                 "read them in its checkpoints");
}

// Writes states, step count and learning rate of an updater for a set, and the number of updates of the set. The
// topology, which may be empty, and its parameters are stored too: the file is a model then.
void save_updater(FileSystem& files, const std::filesystem::path& path, Updater& updater,
                  const std::shared_ptr<ParameterSet>& set, const Topology& topology) {
  require_all_states(*set);
  CheckpointRecord record;
  record.run = nlohmann::json{{kUpdater, updater.describe()}}.dump();
  record.updates = set->updates();
  record.steps = updater.steps(set);
  record.learning_rate = updater.learning_rate();
  CheckpointContents contents;
  contents.record = std::move(record);
  contents.states = updater.states(set);
  write_checkpoint(files, path, topology, *set, contents);
}

// Reads what save_updater wrote, or the updater of a training's checkpoint. Parameters stay as they are. Throws
// TN_INVALID listing all differences if the file is of another updater, or its states have other names or shapes;
// TN_BAD_DATA if it is damaged or no checkpoint. Changes nothing then.
void load_updater(FileSystem& files, Registry& registry, const std::filesystem::path& path, Updater& updater,
                  const std::shared_ptr<ParameterSet>& set) {
  require_all_states(*set);
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
  add_defaults(stored, registry);
  check_same_run(path.string(), stored, present, false);
  const auto states = updater.read_states(set, file);
  updater.adopt(states, file.record().steps, file.record().learning_rate);
  set->set_updates(file.record().updates);
}

}  // namespace

tn_status tn_updater_states(tn_host* host, tn_updater updater, tn_parameters parameters, tn_write write, void* user,
                            tn_error* error) {
  return api::call_updater(host, updater, error, [&](Host& owner, Updater& asked) {
    api::required(write, "write");
    const std::shared_ptr<HeldParameters> held = owner.parameters.at(parameters);
    nlohmann::json list = nlohmann::json::array();
    for (const Updater::StateValues& state : asked.state_shapes(held->set))
      list.push_back({{"state", state.state},
                      {"parameter", state.parameter},
                      {"shape", state.shape},
                      {"dtype", dtype_name(state.dtype)}});
    api::give_text(write, user, list.dump());
  });
}

tn_status tn_updater_get_state(tn_host* host, tn_updater updater, tn_parameters parameters, const char* state,
                               const char* parameter, tn_array* values, tn_error* error) {
  return api::call_updater(host, updater, error, [&](Host& owner, Updater& asked) {
    api::required(values, "values");
    const Updater::StateValues found = state_of(asked, with_values(owner, parameters)->set, api::string(state, "state"),
                                                api::string(parameter, "parameter"));
    *values = api::array({found.dtype, found.shape, found.values});
  });
}

tn_status tn_updater_set_state(tn_host* host, tn_updater updater, tn_parameters parameters, const char* state,
                               const char* parameter, const tn_array* values, tn_error* error) {
  return api::call_updater(host, updater, error, [&](Host& owner, Updater& changed) {
    const ArrayView request = api::view(api::required(values, "values"), [] { return "values"; });
    if (changed.calls_application())
      fail(TN_UNSUPPORTED, "the states of updater \"", changed.type(), "\" are the application's own");
    const Updater::StateValues found = state_of(changed, with_values(owner, parameters)->set,
                                                api::string(state, "state"), api::string(parameter, "parameter"));
    if (request.dtype != TN_F32 || request.storage != TN_DENSE || request.shape != found.shape)
      fail(TN_INVALID, SubjectName{found.state}, "state \"", found.state, "\" of parameter \"", found.parameter,
           "\" is ", dtype_name(TN_F32), " ", to_string(found.shape), "; given ",
           request.storage == TN_DENSE ? "" : "a sparse or ragged array of ", dtype_name(request.dtype), " ",
           to_string(request.shape));
    if (found.count == 0) return;
    if (request.data == nullptr) fail(TN_MISUSE, SubjectName{"values"}, "values.data is null");
    copy_elements(request, static_cast<std::byte*>(found.values));
    found.changed();
  });
}

tn_status tn_updater_steps(tn_host* host, tn_updater updater, tn_parameters parameters, uint64_t* steps,
                           tn_error* error) {
  return api::call_updater(host, updater, error, [&](Host& owner, const Updater& asked) {
    api::required(steps, "steps") = asked.steps(owner.parameters.at(parameters)->set);
  });
}

tn_status tn_updater_skipped(tn_host* host, tn_updater updater, tn_parameters parameters, uint64_t* skipped,
                             tn_error* error) {
  return api::call_updater(host, updater, error, [&](Host& owner, const Updater& asked) {
    api::required(skipped, "skipped") = asked.skipped(owner.parameters.at(parameters)->set);
  });
}

tn_status tn_updater_set_steps(tn_host* host, tn_updater updater, tn_parameters parameters, uint64_t steps,
                               tn_error* error) {
  return api::call_updater(host, updater, error, [&](Host& owner, Updater& changed) {
    changed.set_steps(with_values(owner, parameters)->set, steps);
  });
}

tn_status tn_parameters_updates(tn_host* host, tn_parameters parameters, uint64_t* updates, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const std::shared_ptr<HeldParameters> held = owner.parameters.at(parameters);
    const SetRead read(held->gate);
    api::required(updates, "updates") = held->set->updates();
  });
}

tn_status tn_parameters_set_updates(tn_host* host, tn_parameters parameters, uint64_t updates, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const std::shared_ptr<HeldParameters> held = owner.parameters.at(parameters);
    const SetWrite write(held->gate);
    held->set->set_updates(updates);
  });
}

tn_status tn_updater_save(tn_host* host, tn_updater updater, tn_parameters parameters, const tn_layer* outputs,
                          uint32_t outputs_count, const char* path, tn_error* error) {
  return api::call_updater(host, updater, error, [&](Host& owner, Updater& saved) {
    const std::vector<LayerOutput> stored = api::outputs(owner, outputs, outputs_count, "outputs");
    const std::shared_ptr<HeldParameters> held = with_values(owner, parameters);
    const SetRead read(held->gate);
    save_updater(*owner.files, api::string(path, "path"), saved, held->set,
                 stored.empty() ? Topology() : Topology::trace(stored));
  });
}

tn_status tn_updater_load(tn_host* host, tn_updater updater, tn_parameters parameters, const char* path,
                          tn_error* error) {
  return api::call_updater(host, updater, error, [&](Host& owner, Updater& loaded) {
    const std::shared_ptr<HeldParameters> held = with_values(owner, parameters);
    const SetWrite write(held->gate);
    load_updater(*owner.files, owner.registry, api::string(path, "path"), loaded, held->set);
  });
}

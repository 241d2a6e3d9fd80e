// SPDX-License-Identifier: Apache-2.0
#include "host/api/training_call.h"

#include <utility>

namespace tenon::host {

namespace {

// Chooses the processes with which the machine computes.
void place(TrainingCall& run, int64_t staleness, MachineOptions* options) {
  Team& team = *run.team->team;
  if (team.processes() > 1) options->team = &team;
  if (staleness > 0 && team.processes() > 1) {
    run.bounded = std::make_unique<BoundedMode>(team, staleness);
    options->team = run.bounded->core();
    if (options->training && !run.bounded->is_server()) {
      options->team = nullptr;
      options->rows = &run.bounded->rows();
    }
  } else if (team.servers() > 0 && run.parameters->set->owned() == nullptr) {
    fail(TN_INVALID, SubjectName{"servers"}, "servers is ", team.servers(),
         ": servers own the rows of tables, and the parameters have no tables; make them by tn_team_parameters, or "
         "leave out the servers. With staleness they have all parameters");
  }
}

}  // namespace

TrainingCall prepare(Host& host, const tn_train_options& options, Purpose purpose, const std::string& where) {
  const bool training = purpose == Purpose::kTraining;
  const std::string outputs = where + ".outputs", reader_name = where + ".reader", feeding_name = where + ".feeding";
  TrainingCall run;
  run.outputs = api::outputs(host, options.outputs, options.outputs_count, outputs.c_str());
  if (options.reader.generation == 0) fail(TN_MISUSE, SubjectName{reader_name}, reader_name, " is not set");
  if (options.parameters.generation == 0)
    fail(TN_MISUSE, SubjectName{"options.parameters"}, "options.parameters is not set");
  run.parameters = host.parameters.at(options.parameters);
  if (!run.parameters->set->has_values())  // before the reader is moved
    fail(TN_MISUSE, SubjectName{"options.parameters"}, "options.parameters have no values: they were only declared");
  run.reader = host.readers.at(options.reader);
  run.reader_use = std::make_unique<Use>(run.reader->mark, "reader");
  if (training) run.training = std::make_unique<SetTraining>(run.parameters->gate);
  HeldReader& held = *run.reader;
  Reader& reader = *held.reader;
  if (reader.batch() == 0)
    fail(TN_MISUSE, SubjectName{reader_name}, "the reader yields samples; wrap it with batch or bucket first");
  MachineOptions machine_options;
  machine_options.max_samples = reader.batch();
  machine_options.training = training;
  machine_options.seed = options.seed;
  machine_options.shards = options.shards;
  machine_options.results_only = purpose != Purpose::kInference;
  api::read_compute(options.compute, &machine_options);
  machine_options.checks = host.checks;
  if (options.team.generation != 0) {
    run.team = host.teams.at(options.team);
    run.team_use =
        std::make_unique<Use>(run.team->mark, "team", Reentry::kAllowed);  // by the test of the training, too
    place(run, options.staleness, &machine_options);
  }
  if (training) {
    machine_options.immutable =
        api::strings(options.immutable_parameters, options.immutable_parameters_count, "options.immutable_parameters");
  }
  const auto devices = api::devices(host, options.device, options.devices, options.devices_count);
  {
    const SetRead read(run.parameters->gate);
    run.machine = std::make_shared<HeldMachine>(
        run.parameters, std::make_unique<Machine>(Topology::trace(run.outputs), run.parameters->set, host.registry,
                                                  devices, host.parallel, machine_options));
  }
  run.machine_use = std::make_unique<Use>(run.machine->mark, "machine");
  std::map<std::string, std::string> feeding;
  if (options.feeding_count > 0) api::required(options.feeding, feeding_name.c_str());
  for (uint32_t i = 0; i < options.feeding_count; ++i)
    feeding[api::string(options.feeding[i].slot, feeding_name.c_str(), i, ".slot")] =
        api::string(options.feeding[i].data_layer, feeding_name.c_str(), i, ".data_layer");
  if (options.cancel != nullptr) run.cancel = options.cancel->requested;
  BoundedMode* const bounded = training ? run.bounded.get() : nullptr;
  run.request = std::make_unique<LoopInputs>(
      LoopInputs{*run.machine->machine, host.registry, reader, held.minibatch, std::move(feeding), *host.clock,
                 run.parameters->gate, loop_options(options, training), run.cancel.get(), &host.ending,
                 run.team == nullptr ? nullptr : run.team->team.get(), &held.place, bounded});
  return run;
}

}  // namespace tenon::host

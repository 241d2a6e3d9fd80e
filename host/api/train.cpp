// The public C API: training, testing, inference. SPDX-License-Identifier: Apache-2.0
#include <iterator>

#include "host/api/api.h"
#include "host/training/checkpoints.h"
#include "host/training/training_loop.h"

namespace api = tenon::host::api;
using namespace tenon::host;

namespace {

// The machine, reader and arguments of one call.
struct Run {
  std::unique_ptr<Machine> machine;
  std::unique_ptr<ReaderUse> reader;
  std::unique_ptr<LoopInputs> request;
  std::vector<LayerOutput> outputs;
};

Run prepare(Host& host, const tn_train_options& options, bool training) {
  Run run;
  run.outputs = api::outputs(host, options.outputs, options.outputs_count, "options.outputs");
  if (options.reader.generation == 0) fail(TN_MISUSE, SubjectName{"options.reader"}, "options.reader is not set");
  if (options.parameters.generation == 0)
    fail(TN_MISUSE, SubjectName{"options.parameters"}, "options.parameters is not set");
  if (!host.parameters.at(options.parameters)->has_values())  // before the reader is moved
    fail(TN_MISUSE, SubjectName{"options.parameters"}, "options.parameters have no values: they were only declared");
  run.reader = std::make_unique<ReaderUse>(host.readers.at(options.reader));
  HeldReader& held = **run.reader;
  Reader& reader = *held.reader;
  if (reader.batch() == 0) fail(TN_MISUSE, "the reader yields samples; wrap it with batch or bucket first");
  MachineOptions wanted;
  wanted.max_samples = reader.batch();
  wanted.training = training;
  wanted.seed = options.seed;
  wanted.checks = host.checks;
  if (training) {
    wanted.immutable =
        api::strings(options.immutable_parameters, options.immutable_parameters_count, "options.immutable_parameters");
  }
  run.machine =
      std::make_unique<Machine>(Topology::trace(run.outputs), host.parameters.at(options.parameters), host.registry,
                                host.device(api::device_kind(options.device)), host.parallel, wanted);
  std::map<std::string, std::string> feeding;
  if (options.feeding_count > 0) api::required(options.feeding, "options.feeding");
  for (uint32_t i = 0; i < options.feeding_count; ++i)
    feeding[api::string(options.feeding[i].slot, "options.feeding", i, ".slot")] =
        api::string(options.feeding[i].data_layer, "options.feeding", i, ".data_layer");
  run.request = std::make_unique<LoopInputs>(
      LoopInputs{*run.machine, host.registry, reader, held.minibatch, std::move(feeding), *host.clock});
  return run;
}

// Returns what must be equal in a training that continues another one, besides the topology.
nlohmann::json run_of(const tn_train_options& options, const Run& run, const HeldReader& held, const Updater& updater) {
  using nlohmann::json;
  json names = json::array(), calls = json::array();
  for (const LayerOutput& output : run.outputs) names.push_back(output_name(output));
  const json plan = run.machine->describe();
  for (const json& call : plan["calls"])
    calls.push_back(
        {{"phase", call["phase"]}, {"layers", call["layers"]}, {"call", call["call"]}, {"kernel", call["kernel"]}});
  const Device& device = *run.machine->device();
  json reader = api::describe(*held.reader);
  reader["steps"] = held.steps;
  return {{"seed", options.seed},
          {"outputs", names},
          {"immutable_parameters", api::strings(options.immutable_parameters, options.immutable_parameters_count,
                                                "options.immutable_parameters")},
          {"feeding", run.request->slot_map},
          {"updater", updater.describe()},
          {"reader", reader},
          {"provider",
           {{"device", device.kind()},
            {"plugin", {{"id", device.origin().plugin}, {"version", device.origin().version}}},
            {"calls", calls}}}};
}

CheckpointOptions checkpoint_options(const tn_checkpoint_options& given) {
  CheckpointOptions options;
  options.folder = api::string(given.folder, "options.checkpoint.folder");
  options.every_batches = given.every_batches;
  options.every_passes = given.every_passes;
  options.every_seconds = given.every_seconds;
  if (given.keep != 0) options.keep = given.keep;
  if (given.best != nullptr) options.best = given.best;
  options.best_is_highest = given.best_is_highest != 0;
  constexpr Start kStarts[] = {Start::kFresh, Start::kResume, Start::kResumeInexactly};
  if (given.start >= std::size(kStarts))
    fail(TN_INVALID, SubjectName{"start"}, "options.checkpoint.start is ", given.start, "; expected TN_START_*");
  options.start = kStarts[given.start];
  if (given.from != nullptr) options.from = given.from;
  return options;
}

// The checkpoints of one call of tn_train, and what they borrow.
struct Saving {
  Saving(Host& host, const tn_train_options& given, const Run& run, Updater& updater)
      : options(api::sized(given.checkpoint, "options.checkpoint")),
        topology(stored(host, run)),
        description(run_of(given, run, **run.reader, updater)),
        checkpoints({*host.files, *host.clock, *run.machine, updater, run.request->reader, topology, description},
                    checkpoint_options(options)) {}

  // Returns the topology of the outputs that the application wants stored, and of those that are trained.
  [[nodiscard]] Topology stored(Host& host, const Run& run) const {
    std::vector<LayerOutput> outputs =
        api::outputs(host, options.outputs, options.outputs_count, "options.checkpoint.outputs");
    for (const LayerOutput& trained : run.outputs)
      if (std::none_of(outputs.begin(), outputs.end(), [&](const LayerOutput& other) {
            return other.layer == trained.layer && other.output == trained.output;
          }))
        outputs.push_back(trained);
    return Topology::trace(std::move(outputs));
  }

  const tn_checkpoint_options options;
  const Topology topology;
  const nlohmann::json description;
  Checkpoints checkpoints;
};

// Calls the application's handler and takes over what it has set.
void tell(const tn_train_options& options, Event& event) {
  std::vector<tn_metric> metrics;
  for (const MetricValue& metric : event.metrics) metrics.push_back({metric.name.c_str(), metric.value});
  tn_event told = {};
  told.size = sizeof told;
  told.kind = static_cast<int32_t>(event.kind);
  told.pass = event.pass;
  told.batch = event.batch;
  told.samples = event.samples;
  told.cost = event.cost;
  told.metrics = metrics.data();
  told.metrics_count = static_cast<uint32_t>(metrics.size());
  told.seconds = event.seconds;
  told.learning_rate = event.learning_rate;
  told.scheduled_rate = event.scheduled_rate;
  told.checkpoint = event.checkpoint.empty() ? nullptr : event.checkpoint.c_str();
  options.handler(options.user, &told);
  event.learning_rate = told.learning_rate;
  event.stop = told.stop != 0;
}

}  // namespace

tn_status tn_train(tn_host* host, const tn_train_options* options, tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    const tn_train_options given = api::sized(options, "options");
    if (given.updater.generation == 0) fail(TN_MISUSE, SubjectName{"options.updater"}, "options.updater is not set");
    const std::shared_ptr<Updater> updater = it.updaters.at(given.updater);
    const Run run = prepare(it, given, true);
    EventHandler handler;
    if (given.handler != nullptr) handler = [&](Event& event) { tell(given, event); };
    std::unique_ptr<Saving> saving;
    if (given.checkpoint != nullptr) saving = std::make_unique<Saving>(it, given, run, *updater);
    train(*run.request, *updater, given.passes, handler, saving == nullptr ? nullptr : &saving->checkpoints);
  });
}

tn_status tn_test(tn_host* host, const tn_train_options* options, tn_test_result* result, tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    const tn_train_options given = api::sized(options, "options");
    api::sized(result, "result");
    const Run run = prepare(it, given, false);
    TestResult tested = test(*run.request);
    const std::vector<tn_metric>& metrics = it.lend(std::move(tested.metrics));
    tn_test_result made = {};
    made.cost = tested.cost;
    made.samples = tested.samples;
    made.seconds = tested.seconds;
    made.metrics = metrics.data();
    made.metrics_count = static_cast<uint32_t>(metrics.size());
    api::give(result, "result", made);
  });
}

tn_status tn_infer(tn_host* host, const tn_train_options* options,
                   int32_t (*sink)(void* user, const tn_array* outputs, uint32_t outputs_count), void* user,
                   tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    const tn_train_options given = api::sized(options, "options");
    api::required(sink, "sink");
    const Run run = prepare(it, given, false);
    infer(*run.request, [&](const Machine& machine) {
      std::vector<tn_array> arrays;
      for (const LayerOutput& output : run.outputs) arrays.push_back(api::array(machine.output(output)));
      return sink(user, arrays.data(), static_cast<uint32_t>(arrays.size())) == 0;
    });
  });
}

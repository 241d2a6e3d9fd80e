// The public C API: training, testing, inference. SPDX-License-Identifier: Apache-2.0
#include "host/api/api.h"
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
  if (options.reader.generation == 0) fail(TN_MISUSE, "options.reader is not set");
  if (options.parameters.generation == 0) fail(TN_MISUSE, "options.parameters is not set");
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
    feeding[api::string(options.feeding[i].slot, "feeding slot")] =
        api::string(options.feeding[i].data_layer, "feeding data layer");
  run.request = std::make_unique<LoopInputs>(
      LoopInputs{*run.machine, host.registry, reader, held.minibatch, std::move(feeding), *host.clock});
  return run;
}

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
  options.handler(options.user, &told);
  event.learning_rate = told.learning_rate;
  event.stop = told.stop != 0;
}

}  // namespace

tn_status tn_train(tn_host* host, const tn_train_options* options, tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    const tn_train_options given = api::sized(options, "options");
    if (given.updater.generation == 0) fail(TN_MISUSE, "options.updater is not set");
    const std::shared_ptr<Updater> updater = it.updaters.at(given.updater);
    const Run run = prepare(it, given, true);
    EventHandler handler;
    if (given.handler != nullptr) handler = [&](Event& event) { tell(given, event); };
    train(*run.request, *updater, given.passes, handler);
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
    if (sink == nullptr) fail(TN_MISUSE, "sink is null");
    const Run run = prepare(it, given, false);
    infer(*run.request, [&](const Machine& machine) {
      std::vector<tn_array> arrays;
      for (const LayerOutput& output : run.outputs) arrays.push_back(api::array(machine.output(output)));
      return sink(user, arrays.data(), static_cast<uint32_t>(arrays.size())) == 0;
    });
  });
}

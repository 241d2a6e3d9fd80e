// The public C API: readers, training, testing, inference. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "host/api.h"
#include "host/trainer.h"

namespace api = tenon::api;
using tenon::Host;
using tenon::Machine;
using tenon::ReaderStage;

namespace {

// Puts a wrapper around a reader that has not been cut into minibatches yet; the old handle becomes stale. On failure
// the reader is as it was.
template <typename Wrap>
tn_reader wrapped(Host& host, tn_reader of, const char* wrapper, Wrap&& wrap) {
  const std::shared_ptr<ReaderStage> stage = host.readers.at(of);
  if (stage->batches)
    tenon::fail(TN_MISUSE, wrapper, ": the reader yields minibatches already; put ", wrapper, " before batch");
  wrap(*stage);
  host.readers.take(of);
  return host.readers.add<tn_reader>(stage);
}

struct Run {
  std::unique_ptr<Machine> machine;
  std::shared_ptr<ReaderStage> reader;
  std::unique_ptr<tenon::TrainRequest> request;
  std::vector<tenon::Expression> outputs;
};

Run prepare(Host& host, const tn_train_options& options, bool training) {
  Run run;
  run.outputs = api::outputs(host, options.outputs, options.outputs_count, "options.outputs");
  if (options.reader.generation == 0) tenon::fail(TN_MISUSE, "options.reader is not set");
  if (options.parameters.generation == 0) tenon::fail(TN_MISUSE, "options.parameters is not set");
  run.reader = host.readers.at(options.reader);
  if (!run.reader->batches) tenon::fail(TN_MISUSE, "the reader yields samples; wrap it with batch first");
  tenon::MachineOptions wanted;
  wanted.max_samples = run.reader->batches->batch_samples();
  wanted.training = training;
  wanted.seed = options.seed;
  if (training) {
    wanted.immutable =
        api::strings(options.immutable_parameters, options.immutable_parameters_count, "options.immutable_parameters");
  }
  run.machine =
      std::make_unique<Machine>(tenon::Topology::trace(run.outputs), host.parameters.at(options.parameters),
                                host.registry, host.device(api::device_kind(options.device)), host.parallel, wanted);
  std::map<std::string, std::string> feeding;
  if (options.feeding_count > 0) api::required(options.feeding, "options.feeding");
  for (uint32_t i = 0; i < options.feeding_count; ++i)
    feeding[api::string(options.feeding[i].slot, "feeding slot")] =
        api::string(options.feeding[i].data_layer, "feeding data layer");
  run.request = std::make_unique<tenon::TrainRequest>(
      tenon::TrainRequest{*run.machine, host.registry, *run.reader->batches, std::move(feeding), *host.clock});
  return run;
}

// The handler behind the C one.
void tell(const tn_train_options& options, tenon::Event& event) {
  std::vector<tn_metric> metrics;
  for (const tenon::MetricValue& metric : event.metrics) metrics.push_back({metric.name.c_str(), metric.value});
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

tn_status tn_reader_create(tn_host* host, const tn_reader_options* options, tn_reader* reader, tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    const tn_reader_options given = api::sized(options, "options");
    api::required(reader, "reader");
    auto stage = std::make_shared<ReaderStage>();
    stage->samples = tenon::open_reader(it.registry.reader(api::string(given.type, "options.type")),
                                        api::values(given.attributes, given.attributes_count),
                                        given.directory == nullptr ? "." : given.directory, given.shard,
                                        std::max(given.shards, 1U), it.services.get());
    *reader = it.readers.add<tn_reader>(std::move(stage));
  });
}

tn_status tn_reader_shuffle(tn_host* host, tn_reader of, int64_t buffer, uint64_t seed, tn_reader* reader,
                            tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    if (buffer < 0) tenon::fail(TN_INVALID, "buffer is ", buffer, "; expected at least 0");
    api::required(reader, "reader");  // before `of` is consumed
    *reader = wrapped(it, of, "shuffle", [&](ReaderStage& stage) {
      stage.samples = tenon::shuffle(stage.samples, buffer, seed, it.allocator);
    });
  });
}

tn_status tn_reader_batch(tn_host* host, tn_reader of, int64_t samples, int32_t drop_last, tn_reader* reader,
                          tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    if (samples < 1) tenon::fail(TN_INVALID, "batch: samples is ", samples, "; expected at least 1");
    api::required(reader, "reader");
    *reader = wrapped(it, of, "batch", [&](ReaderStage& stage) {
      stage.batches = std::make_unique<tenon::BatchReader>(stage.samples, samples, drop_last != 0, it.allocator);
    });
  });
}

tn_status tn_reader_first_n(tn_host* host, tn_reader of, int64_t samples, tn_reader* reader, tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    if (samples < 0) tenon::fail(TN_INVALID, "first_n: samples is ", samples, "; expected at least 0");
    api::required(reader, "reader");
    *reader =
        wrapped(it, of, "first_n", [&](ReaderStage& stage) { stage.samples = tenon::first_n(stage.samples, samples); });
  });
}

tn_status tn_reader_describe(tn_host* host, tn_reader reader, tn_write write, void* user, tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    if (write == nullptr) tenon::fail(TN_MISUSE, "write is null");
    const tenon::Reader& described = it.readers.at(reader)->reader();
    nlohmann::json slots = nlohmann::json::array();
    for (const tenon::Slot& slot : described.slots())
      slots.push_back({{"name", slot.name},
                       {"dtype", tenon::dtype_name(slot.dtype)},
                       {"shape", slot.shape},
                       {"index_limit", slot.index_limit}});
    const std::string text = nlohmann::json{{"samples", described.size()}, {"slots", slots}}.dump();
    write(user, text.data(), text.size());
  });
}

tn_status tn_reader_next(tn_host* host, tn_reader reader, tn_array* values, uint32_t values_count, tn_error* error) {
  bool ended = false;
  const tn_status status = api::call(host, error, [&](Host& it) {
    const std::shared_ptr<ReaderStage> held = it.readers.at(reader);  // whatever the reader's plugin does meanwhile
    ReaderStage& stage = *held;
    const std::vector<tenon::Slot>& slots = stage.reader().slots();
    if (values_count != slots.size())
      tenon::fail(TN_INVALID, "values_count is ", values_count, "; the reader has ", slots.size(), " slots");
    api::required(values, "values");
    if (!stage.batches) stage.batches = std::make_unique<tenon::BatchReader>(stage.samples, 1, false, it.allocator);
    const int64_t samples = stage.batches->next();
    ended = samples == 0;
    for (size_t i = 0; !ended && i < slots.size(); ++i) {
      tenon::ArrayView view{slots[i].dtype, {samples}, stage.batches->data(i)};
      view.shape.insert(view.shape.end(), slots[i].shape.begin(), slots[i].shape.end());
      values[i] = api::array(view);
    }
  });
  return status == TN_OK && ended ? tn_status{TN_END} : status;
}

tn_status tn_reader_release(tn_host* host, tn_reader reader, tn_error* error) {
  return api::call(host, error, [&](Host& it) { it.readers.take(reader); });
}

// ---- loops

tn_status tn_train(tn_host* host, const tn_train_options* options, tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    const tn_train_options given = api::sized(options, "options");
    if (given.updater.generation == 0) tenon::fail(TN_MISUSE, "options.updater is not set");
    const std::shared_ptr<tenon::Updater> updater = it.updaters.at(given.updater);
    const Run run = prepare(it, given, true);
    tenon::EventHandler handler;
    if (given.handler != nullptr) handler = [&](tenon::Event& event) { tell(given, event); };
    tenon::train(*run.request, *updater, given.passes, handler);
  });
}

tn_status tn_test(tn_host* host, const tn_train_options* options, tn_test_result* result, tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    const tn_train_options given = api::sized(options, "options");
    api::sized(result, "result");
    const Run run = prepare(it, given, false);
    tenon::TestResult tested = tenon::test(*run.request);
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
    if (sink == nullptr) tenon::fail(TN_MISUSE, "sink is null");
    const Run run = prepare(it, given, false);
    tenon::infer(*run.request, [&](const Machine& machine) {
      std::vector<tn_array> arrays;
      for (const tenon::Expression& output : run.outputs) arrays.push_back(api::array(machine.output(output)));
      return sink(user, arrays.data(), static_cast<uint32_t>(arrays.size())) == 0;
    });
  });
}

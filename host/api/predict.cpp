// The public C API: predictors. SPDX-License-Identifier: Apache-2.0
#include <tenon/tenon_predictor.h>

#include "host/api/api.h"

namespace api = tenon::host::api;
using namespace tenon::host;

namespace {

constexpr uint32_t kMostMachines = 1024;

PredictorOptions predictor_options(const Host& host, const tn_predictor_options& given) {
  PredictorOptions options;
  api::read_compute(given.compute, &options.machine);
  options.machine.max_samples = given.max_samples == 0 ? 1 : given.max_samples;
  options.machine.max_rows = given.max_rows;
  options.machine.seed = given.seed;
  options.machine.checks = host.checks;
  options.machines = given.machines == 0 ? static_cast<uint32_t>(host.pool.threads()) : given.machines;
  if (options.machines > kMostMachines)
    fail(TN_INVALID, SubjectName{"options.machines"}, "options.machines is ", given.machines, "; expected 0 to ",
         kMostMachines);
  if (given.parallel > 1)
    fail(TN_INVALID, SubjectName{"options.parallel"}, "options.parallel is ", given.parallel, "; expected 0 or 1");
  return options;
}

}  // namespace

tn_status tn_predictor_create(tn_host* host, tn_parameters parameters, const tn_layer* outputs, uint32_t outputs_count,
                              const tn_predictor_options* options, tn_predictor* predictor, tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    api::required(predictor, "predictor");
    tn_predictor_options given = {};
    if (options != nullptr) given = api::sized(options, "options");
    Topology topology = Topology::trace(api::outputs(it, outputs, outputs_count, "outputs"));
    const std::shared_ptr<HeldParameters> held = it.parameters.at(parameters);
    const std::shared_ptr<Device> device = it.device(api::device_kind(given.device));
    const PredictorOptions wanted = predictor_options(it, given);
    const SetRead read(held->gate);
    *predictor = it.predictors.add<tn_predictor>(
        std::make_shared<Predictor>(std::move(topology), Snapshot{held->set, held->gate.version()}, it.registry, device,
                                    given.parallel == 0 ? it.alone : it.parallel, wanted));
  });
}

tn_status tn_predict(tn_host* host, tn_predictor predictor, const tn_feed* feeds, uint32_t feeds_count,
                     void (*sink)(void* user, const tn_array* outputs, uint32_t outputs_count), void* user,
                     tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    api::required(sink, "sink");
    const std::shared_ptr<Predictor> held = it.predictors.at(predictor);
    held->predict(api::named_arrays(feeds, feeds_count, "feeds"), [&](const Machine& machine) {
      std::vector<tn_array> arrays;
      for (const LayerOutput& output : held->topology().outputs) arrays.push_back(api::array(machine.output(output)));
      sink(user, arrays.data(), static_cast<uint32_t>(arrays.size()));
    });
  });
}

tn_status tn_predictor_refresh(tn_host* host, tn_predictor predictor, tn_parameters parameters, tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    const std::shared_ptr<Predictor> held = it.predictors.at(predictor);
    const std::shared_ptr<HeldParameters> from = it.parameters.at(parameters);
    const SetRead read(from->gate);
    held->refresh({from->set, from->gate.version()});
  });
}

tn_status tn_predictor_release(tn_host* host, tn_predictor predictor, tn_error* error) {
  return api::call(host, error, [&](Host& it) { it.predictors.take(predictor); });
}

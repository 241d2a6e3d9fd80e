// The public C API: predictors. SPDX-License-Identifier: Apache-2.0
#include <tenon/tenon_predictor.h>

#include "host/api/api.h"

namespace api = tenon::host::api;
using namespace tenon::host;

namespace {

constexpr uint32_t kMostMachines = 1024;

PredictorOptions predictor_options(const Host& host, const tn_predictor_options& request) {
  PredictorOptions options;
  api::read_compute(request.compute, &options.machine);
  options.machine.max_samples = request.max_samples == 0 ? 1 : request.max_samples;
  options.machine.max_rows = request.max_rows;
  options.machine.seed = request.seed;
  options.machine.checks = host.checks;
  options.machines = request.machines == 0 ? static_cast<uint32_t>(host.pool.threads()) : request.machines;
  if (options.machines > kMostMachines)
    fail(TN_INVALID, SubjectName{"options.machines"}, "options.machines is ", request.machines, "; expected 0 to ",
         kMostMachines);
  if (request.parallel > 1)
    fail(TN_INVALID, SubjectName{"options.parallel"}, "options.parallel is ", request.parallel, "; expected 0 or 1");
  return options;
}

}  // namespace

tn_status tn_predictor_create(tn_host* host, tn_parameters parameters, const tn_layer* outputs, uint32_t outputs_count,
                              const tn_predictor_options* options, tn_predictor* predictor, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    api::required(predictor, "predictor");
    tn_predictor_options request = {};
    if (options != nullptr) request = api::sized(options, "options");
    Topology topology = Topology::trace(api::outputs(owner, outputs, outputs_count, "outputs"));
    const std::shared_ptr<HeldParameters> held = owner.parameters.at(parameters);
    const std::shared_ptr<Device> device = owner.device(api::device_kind(request.device));
    const PredictorOptions wanted = predictor_options(owner, request);
    const SetRead read(held->gate);
    *predictor = owner.predictors.add<tn_predictor>(
        std::make_shared<Predictor>(std::move(topology), Snapshot{held->set, held->gate.version()}, owner.registry,
                                    device, request.parallel == 0 ? owner.alone : owner.parallel, wanted));
  });
}

tn_status tn_predictor_predict(tn_host* host, tn_predictor predictor, const tn_feed* feeds, uint32_t feeds_count,
                               void (*sink)(void* user, const tn_array* outputs, uint32_t outputs_count), void* user,
                               tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    api::required(sink, "sink");
    const std::shared_ptr<Predictor> held = owner.predictors.at(predictor);
    held->predict(api::named_arrays(feeds, feeds_count, "feeds"), [&](const Machine& machine) {
      std::vector<tn_array> arrays;
      for (const LayerOutput& output : held->topology().outputs) arrays.push_back(api::array(machine.output(output)));
      sink(user, arrays.data(), static_cast<uint32_t>(arrays.size()));
    });
  });
}

tn_status tn_predict(tn_host* host, tn_predictor predictor, const tn_feed* feeds, uint32_t feeds_count,
                     void (*sink)(void* user, const tn_array* outputs, uint32_t outputs_count), void* user,
                     tn_error* error) {
  return tn_predictor_predict(host, predictor, feeds, feeds_count, sink, user, error);
}

tn_status tn_predictor_refresh(tn_host* host, tn_predictor predictor, tn_parameters parameters, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const std::shared_ptr<Predictor> held = owner.predictors.at(predictor);
    const std::shared_ptr<HeldParameters> from = owner.parameters.at(parameters);
    const SetRead read(from->gate);
    held->refresh({from->set, from->gate.version()});
  });
}

tn_status tn_predictor_release(tn_host* host, tn_predictor predictor, tn_error* error) {
  return api::call(host, error, [&](Host& owner) { owner.predictors.take(predictor); });
}

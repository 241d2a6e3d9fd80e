// The public C API: gradient machines and updaters. SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "host/api/api.h"

namespace api = tenon::host::api;
using namespace tenon::host;

tn_status tn_machine_create(tn_host* host, tn_parameters parameters, const tn_layer* outputs, uint32_t outputs_count,
                            const tn_machine_options* options, tn_machine* machine, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const tn_machine_options request = api::sized(options, "options");
    api::required(machine, "machine");
    MachineOptions wanted;
    api::read_compute(request.compute, &wanted);
    wanted.max_samples = request.max_samples;
    wanted.training = request.training != 0;
    wanted.keep_all = request.keep_all != 0;
    wanted.seed = request.seed;
    wanted.shards = request.shards;
    wanted.max_rows = request.max_rows;
    constexpr uint32_t kFlags = TN_MACHINE_DATA_GRADIENTS | TN_MACHINE_GIVEN_GRADIENTS;
    if ((request.flags & ~kFlags) != 0)
      fail(TN_UNSUPPORTED, SubjectName{"options.flags"}, "options.flags is ", request.flags, "; expected TN_MACHINE_*");
    wanted.data_gradients = (request.flags & TN_MACHINE_DATA_GRADIENTS) != 0;
    wanted.given_gradients = (request.flags & TN_MACHINE_GIVEN_GRADIENTS) != 0;
    wanted.checks = owner.checks;
    wanted.immutable =
        api::strings(request.immutable_parameters, request.immutable_parameters_count, "options.immutable_parameters");
    const Topology topology = Topology::trace(api::outputs(owner, outputs, outputs_count, "outputs"));
    const std::shared_ptr<HeldParameters> held = owner.parameters.at(parameters);
    const auto devices = api::devices(owner, request.device, request.devices, request.devices_count);
    const SetRead read(held->gate);
    *machine = owner.machines.add<tn_machine>(std::make_shared<HeldMachine>(
        held, std::make_unique<Machine>(topology, held->set, owner.registry, devices, owner.parallel, wanted)));
  });
}

tn_status tn_machine_forward(tn_host* host, tn_machine machine, const tn_feed* feeds, uint32_t feeds_count,
                             tn_error* error) {
  return api::call_machine(host, machine, error, [&](Host&, HeldMachine& held) {
    const std::vector<NamedArray> named = api::named_arrays(feeds, feeds_count, "feeds");
    held.require_unleased();
    held.machine->forward(held.parameters->gate, by_number(held.machine->feeds(), named));
  });
}

tn_status tn_machine_backward(tn_host* host, tn_machine machine, tn_error* error) {
  return api::call_machine(host, machine, error, [&](Host&, HeldMachine& held) {
    const SetRead read(held.parameters->gate);
    held.machine->backward();
  });
}

tn_status tn_machine_reset_carried(tn_host* host, tn_machine machine, tn_error* error) {
  return api::call_machine(host, machine, error, [](Host&, HeldMachine& held) { held.machine->reset_carried(); });
}

tn_status tn_machine_output(tn_host* host, tn_machine machine, tn_layer layer, tn_array* values, tn_error* error) {
  return api::call_machine(host, machine, error, [&](Host& owner, const HeldMachine& held) {
    api::required(values, "values") = api::array(held.machine->output(owner.layers.at(layer)));
  });
}

tn_status tn_machine_gradient(tn_host* host, tn_machine machine, const char* parameter, tn_array* values,
                              tn_error* error) {
  return api::call_machine(host, machine, error, [&](Host&, const HeldMachine& held) {
    api::required(values, "values") = api::array(held.machine->step().gradient(api::string(parameter, "parameter")));
  });
}

tn_status tn_machine_sparse_gradient(tn_host* host, tn_machine machine, const char* parameter, tn_array* ids,
                                     tn_array* values, tn_error* error) {
  return api::call_machine(host, machine, error, [&](Host&, const HeldMachine& held) {
    api::required(ids, "ids");
    api::required(values, "values");
    const SparseGradientView rows = held.machine->step().sparse_gradient(api::string(parameter, "parameter"));
    *ids = api::array(rows.ids);
    *values = api::array(rows.values);
  });
}

tn_status tn_machine_cost(tn_host* host, tn_machine machine, double* cost, tn_error* error) {
  return api::call_machine(host, machine, error,
                           [&](Host&, const HeldMachine& held) { api::required(cost, "cost") = held.machine->cost(); });
}

namespace {

// Lends what a machine measured in its last forward.
tn_status lend_measured(tn_host* host, tn_machine machine, Lent kind, const tn_metric** values, uint32_t* count,
                        tn_error* error) {
  return api::call_machine(host, machine, error, [&](Host& owner, const HeldMachine& held) {
    api::required(values, kind == Lent::kMetrics ? "metrics" : "costs");
    api::required(count, "count");
    const Machine& asked = *held.machine;
    ResultSums result(asked, owner.registry);
    if (asked.samples() > 0) result.add(asked);
    TestResult measured = result.measured();
    const std::vector<tn_metric>& lent =
        owner.lend(std::move(kind == Lent::kMetrics ? measured.metrics : measured.costs), kind);
    *values = lent.data();
    *count = static_cast<uint32_t>(lent.size());
  });
}

}  // namespace

tn_status tn_machine_metrics(tn_host* host, tn_machine machine, const tn_metric** metrics, uint32_t* count,
                             tn_error* error) {
  return lend_measured(host, machine, Lent::kMetrics, metrics, count, error);
}

tn_status tn_machine_costs(tn_host* host, tn_machine machine, const tn_metric** costs, uint32_t* count,
                           tn_error* error) {
  return lend_measured(host, machine, Lent::kCosts, costs, count, error);
}

tn_status tn_machine_plan(tn_host* host, tn_machine machine, tn_write write, void* user, tn_error* error) {
  return api::call_machine(host, machine, error, [&](const Host& owner, const HeldMachine& held) {
    nlohmann::json plan = held.machine->describe();
    plan["threads"] = {{"count", owner.pool.threads()}, {"reason", owner.pool.reason()}};
    api::give_text(write, user, plan.dump());
  });
}

tn_status tn_machine_release(tn_host* host, tn_machine machine, tn_error* error) {
  return api::call_machine(host, machine, error, [&](Host& owner, const HeldMachine& held) {
    held.machine->require_own();
    owner.machines.take(machine);
  });
}

// ---- updaters

tn_status tn_updater_create(tn_host* host, const char* type, const tn_named_value* attributes,
                            uint32_t attributes_count, tn_updater* updater, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    api::required(updater, "updater");
    *updater = owner.updaters.add<tn_updater>(std::make_shared<HeldUpdater>(std::make_unique<ProgramUpdater>(
        owner.registry.updater(api::string(type, "type")), api::values(attributes, attributes_count, "attributes"))));
  });
}

tn_status tn_updater_describe(tn_host* host, tn_updater updater, tn_parameters parameters, tn_write write, void* user,
                              tn_error* error) {
  std::string text;
  const tn_status status = api::call_updater(host, updater, error, [&](Host& owner, const Updater& described) {
    api::required(write, "write");
    const std::shared_ptr<HeldParameters> held = owner.parameters.at(parameters);
    const UpdateCalls::Written written = described.written(held->set);
    text = nlohmann::json{{"type", described.type()},
                          {"learning_rate", described.learning_rate()},
                          {"state_bytes", described.state_bytes(*held->set)},
                          {"workspace_bytes", described.workspace_bytes(held->set)},
                          {"last_update", {{"rows", written.rows}, {"bytes_written", written.bytes}}}}
               .dump();
  });
  if (status == TN_OK) write(user, text.data(), text.size());
  return status;
}

tn_status tn_updater_set_learning_rate(tn_host* host, tn_updater updater, double learning_rate, tn_error* error) {
  return api::call_updater(host, updater, error, [&](Host&, Updater& with) { with.set_learning_rate(learning_rate); });
}

tn_status tn_updater_release(tn_host* host, tn_updater updater, tn_error* error) {
  return api::call(host, error, [&](Host& owner) { owner.updaters.take(updater); });
}

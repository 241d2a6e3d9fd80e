// The public C API: gradient machines and updaters. SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "host/api/api.h"

namespace api = tenon::host::api;
using namespace tenon::host;

tn_status tn_machine_create(tn_host* host, tn_parameters parameters, const tn_layer* outputs, uint32_t outputs_count,
                            const tn_machine_options* options, tn_machine* machine, tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    const tn_machine_options given = api::sized(options, "options");
    api::required(machine, "machine");
    MachineOptions wanted;
    wanted.compute = given.compute == TN_COMPUTE ? TN_F32 : given.compute;
    wanted.max_samples = given.max_samples;
    wanted.training = given.training != 0;
    wanted.keep_all = given.keep_all != 0;
    wanted.seed = given.seed;
    wanted.max_rows = given.max_rows;
    wanted.checks = it.checks;
    wanted.immutable =
        api::strings(given.immutable_parameters, given.immutable_parameters_count, "options.immutable_parameters");
    *machine = it.machines.add<tn_machine>(std::make_unique<Machine>(
        Topology::trace(api::outputs(it, outputs, outputs_count, "outputs")), it.parameters.at(parameters), it.registry,
        it.device(api::device_kind(given.device)), it.parallel, wanted));
  });
}

tn_status tn_machine_forward(tn_host* host, tn_machine machine, const tn_feed* feeds, uint32_t feeds_count,
                             tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    if (feeds_count > 0) api::required(feeds, "feeds");
    std::vector<NamedArray> named;
    for (uint32_t i = 0; i < feeds_count; ++i) {
      const std::string name = api::string(feeds[i].name, "feeds", i, ".name");
      named.push_back({name, api::view(
                                 feeds[i].values, [&] { return "data layer \"" + name + "\""; }, name)});
    }
    Machine& fed = *it.machines.at(machine);
    fed.forward(by_number(fed.feeds(), named));
  });
}

tn_status tn_machine_backward(tn_host* host, tn_machine machine, tn_error* error) {
  return api::call(host, error, [&](Host& it) { it.machines.at(machine)->backward(); });
}

tn_status tn_machine_reset_carried(tn_host* host, tn_machine machine, tn_error* error) {
  return api::call(host, error, [&](Host& it) { it.machines.at(machine)->reset_carried(); });
}

tn_status tn_machine_output(tn_host* host, tn_machine machine, tn_layer layer, tn_array* values, tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    api::required(values, "values") = api::array(it.machines.at(machine)->output(it.layers.at(layer)));
  });
}

tn_status tn_machine_gradient(tn_host* host, tn_machine machine, const char* parameter, tn_array* values,
                              tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    api::required(values, "values") =
        api::array(it.machines.at(machine)->gradient(api::string(parameter, "parameter")));
  });
}

tn_status tn_machine_sparse_gradient(tn_host* host, tn_machine machine, const char* parameter, tn_array* ids,
                                     tn_array* values, tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    api::required(ids, "ids");
    api::required(values, "values");
    const Machine::SparseGradientView rows =
        it.machines.at(machine)->sparse_gradient(api::string(parameter, "parameter"));
    *ids = api::array(rows.ids);
    *values = api::array(rows.values);
  });
}

tn_status tn_machine_cost(tn_host* host, tn_machine machine, double* cost, tn_error* error) {
  return api::call(host, error, [&](Host& it) { api::required(cost, "cost") = it.machines.at(machine)->cost(); });
}

tn_status tn_machine_metrics(tn_host* host, tn_machine machine, const tn_metric** metrics, uint32_t* count,
                             tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    api::required(metrics, "metrics");
    api::required(count, "count");
    const Machine& asked = *it.machines.at(machine);
    ResultSums result(asked, it.registry);
    if (asked.samples() > 0) result.add(asked);
    const std::vector<tn_metric>& lent = it.lend(result.metrics());
    *metrics = lent.data();
    *count = static_cast<uint32_t>(lent.size());
  });
}

tn_status tn_machine_plan(tn_host* host, tn_machine machine, tn_write write, void* user, tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    api::required(write, "write");
    const std::string text = it.machines.at(machine)->describe().dump();
    write(user, text.data(), text.size());
  });
}

tn_status tn_machine_release(tn_host* host, tn_machine machine, tn_error* error) {
  return api::call(host, error, [&](Host& it) { it.machines.take(machine); });
}

// ---- updaters

namespace {

void update(Updater& updater, Machine& machine, const UsedNames& used) {
  if (!machine.is_for_training()) fail(TN_MISUSE, "this machine was made without training; it has no gradients");
  updater.update(machine, used);
  machine.commit(used);
}

}  // namespace

tn_status tn_updater_create(tn_host* host, const char* type, const tn_named_value* attributes,
                            uint32_t attributes_count, tn_updater* updater, tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    api::required(updater, "updater");
    *updater = it.updaters.add<tn_updater>(std::make_shared<Updater>(
        it.registry.updater(api::string(type, "type")), api::values(attributes, attributes_count, "attributes")));
  });
}

tn_status tn_updater_update(tn_host* host, tn_updater updater, tn_machine machine, tn_error* error) {
  return api::call(host, error,
                   [&](Host& it) { update(*it.updaters.at(updater), *it.machines.at(machine), UsedNames()); });
}

tn_status tn_updater_update_model(tn_host* host, tn_updater updater, tn_machine machine, tn_layer output,
                                  tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    const UsedNames used(Topology::trace({it.layers.at(output)}));
    update(*it.updaters.at(updater), *it.machines.at(machine), used);
  });
}

tn_status tn_updater_describe(tn_host* host, tn_updater updater, tn_parameters parameters, tn_write write, void* user,
                              tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    api::required(write, "write");
    const Updater& described = *it.updaters.at(updater);
    const UpdateCalls::Written written = described.written(it.parameters.at(parameters));
    const std::string text =
        nlohmann::json{{"type", described.type()},
                       {"learning_rate", described.learning_rate()},
                       {"state_bytes", described.state_bytes(*it.parameters.at(parameters))},
                       {"workspace_bytes", described.workspace_bytes(it.parameters.at(parameters))},
                       {"last_update", {{"rows", written.rows}, {"bytes_written", written.bytes}}}}
            .dump();
    write(user, text.data(), text.size());
  });
}

tn_status tn_updater_set_learning_rate(tn_host* host, tn_updater updater, double learning_rate, tn_error* error) {
  return api::call(host, error, [&](Host& it) { it.updaters.at(updater)->set_learning_rate(learning_rate); });
}

tn_status tn_updater_release(tn_host* host, tn_updater updater, tn_error* error) {
  return api::call(host, error, [&](Host& it) { it.updaters.take(updater); });
}

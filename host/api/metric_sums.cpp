// The public C API: cost and metrics over many minibatches of a machine. SPDX-License-Identifier: Apache-2.0
#include <tenon/tenon_updater.h>

#include "host/api/api.h"

namespace api = tenon::host::api;
using namespace tenon::host;

namespace {

template <typename Work>
tn_status call_metrics(tn_host* host, tn_metrics metrics, tn_error* error, Work&& work) noexcept {
  return api::call(host, error, [&](Host& owner) {
    const std::shared_ptr<HeldMetrics> held = owner.metric_sums.at(metrics);
    const Use use(held->mark, "metrics");
    work(owner, *held);
  });
}

}  // namespace

void api::give_measured(const TestResult& measured, tn_metrics_sink sink, void* user) {
  const std::vector<tn_metric> metrics = table_of(measured.metrics), costs = table_of(measured.costs);
  tn_metrics_values values = {};
  values.size = sizeof values;
  values.metrics_count = static_cast<uint32_t>(metrics.size());
  values.cost = measured.cost;
  values.samples = measured.samples;
  values.metrics = metrics.data();
  values.costs = costs.data();
  values.costs_count = static_cast<uint32_t>(costs.size());
  sink(user, &values);
}

tn_status tn_metrics_create(tn_host* host, tn_machine machine, tn_metrics* metrics, tn_error* error) {
  return api::call_machine(host, machine, error, [&](Host& owner, const HeldMachine& held) {
    api::required(metrics, "metrics");
    *metrics = owner.metric_sums.add<tn_metrics>(
        std::make_shared<HeldMetrics>(machine, ResultSums(*held.machine, owner.registry)));
  });
}

tn_status tn_metrics_append(tn_host* host, tn_metrics metrics, tn_machine machine, tn_error* error) {
  return call_metrics(host, metrics, error, [&](Host& owner, HeldMetrics& held) {
    const std::shared_ptr<HeldMachine> of = owner.machines.at(machine);
    const Use use(of->mark, "machine");
    const Machine& added = *of->machine;
    if (held.machine.index != machine.index || held.machine.generation != machine.generation)
      fail(TN_INVALID, SubjectName{"machine"}, "the metrics are of another machine");
    if (added.samples() < 0) fail(TN_MISUSE, "metrics need a forward of the machine that succeeded before them");
    if (added.samples() > 0) held.sums.add(added);
  });
}

tn_status tn_metrics_read(tn_host* host, tn_metrics metrics, tn_metrics_sink sink, void* user, tn_error* error) {
  return call_metrics(host, metrics, error, [&](Host&, const HeldMetrics& held) {
    api::required(sink, "sink");
    api::give_measured(held.sums.measured(), sink, user);
  });
}

tn_status tn_machine_measure(tn_host* host, tn_machine machine, tn_metrics_sink sink, void* user, tn_error* error) {
  return api::call_machine(host, machine, error, [&](Host& owner, const HeldMachine& held) {
    api::required(sink, "sink");
    ResultSums sums(*held.machine, owner.registry);
    if (held.machine->samples() > 0) sums.add(*held.machine);
    api::give_measured(sums.measured(), sink, user);
  });
}

tn_status tn_metrics_merge(tn_host* host, tn_metrics metrics, tn_metrics from, tn_error* error) {
  return call_metrics(host, metrics, error, [&](Host& owner, HeldMetrics& held) {
    const std::shared_ptr<HeldMetrics> of = owner.metric_sums.at(from);
    if (of.get() == &held) fail(TN_INVALID, SubjectName{"from"}, "metrics cannot be merged with themselves");
    const Use use(of->mark, "metrics");
    held.sums.add(of->sums);
  });
}

tn_status tn_metrics_flush(tn_host* host, tn_metrics metrics, tn_error* error) {
  return call_metrics(host, metrics, error, [](Host&, HeldMetrics& held) { held.sums.clear(); });
}

tn_status tn_metrics_release(tn_host* host, tn_metrics metrics, tn_error* error) {
  return api::call(host, error, [&](Host& owner) { owner.metric_sums.take(metrics); });
}

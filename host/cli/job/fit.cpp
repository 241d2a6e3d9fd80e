// SPDX-License-Identifier: Apache-2.0
#include "host/cli/job/fit.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tenon/tenon_machine.hpp>
#include <tenon/tenon_updater.hpp>

#include "host/cli/cli.h"
#include "host/cli/interrupt.h"

namespace tenon::cli {

namespace {

// Refuses a layer that is computed from another one of the list: its statistics would be those of values that move.
void check_independent(const Job& job, const Topology& topology) {
  for (const std::string& name : job.fit)
    for (const std::string& other : topology.inputs_of({name}))
      if (std::find(job.fit.begin(), job.fit.end(), other) != job.fit.end())
        throw Failure(kBadConfig, job.fit_place + ": key \"fit\": layer \"" + name + "\" is computed from layer \"" +
                                      other + "\", which is in the list too");
}

// Gives the buffers their next values, which takes a backward; its gradients are dropped.
void end_step(const Machine& machine, const Layers& layers) {
  std::vector<OutputGradient> gradients;
  std::vector<std::vector<float>> zeros;
  for (const Layer& layer : layers) {
    Array gradient = machine.output(layer);
    zeros.emplace_back(static_cast<size_t>(gradient.count()));
    gradient.data = zeros.back().data();
    gradients.push_back({layer, gradient});
  }
  backward_from(machine, gradients);
  commit(machine);
}

}  // namespace

std::vector<std::string> immutable_parameters(const Job& job, Topology& topology, const Parameters& parameters) {
  using nlohmann::json;
  check_independent(job, topology);
  std::vector<std::string> buffers, result = job.immutable_parameters;
  for (const json& each : json::parse(parameters.describe()))
    if (each.at("kind") == "buffer") buffers.push_back(each.at("name"));
  for (const std::string& name : job.fit) {
    if (!topology.has_layer(name))
      throw Failure(kBadConfig, job.fit_place + ": key \"fit\": " + topology.unknown(name));
    const size_t before = result.size();
    const json described = json::parse(topology.layer(name).describe());
    const std::string prefix = described.at("attributes").value("parameter_name", name) + ".";
    for (const std::string& buffer : buffers)
      if (buffer.rfind(prefix, 0) == 0) result.push_back(buffer);
    if (result.size() == before)
      throw Failure(kBadConfig, job.fit_place + ": key \"fit\": layer \"" + name +
                                    "\" has no buffers among those of the outputs, so nothing is fitted");
  }
  return result;
}

int64_t fit(const Host& host, const Job& job, Topology& topology, const Parameters& parameters,
            const std::vector<Names>& known) {
  const OpenReader open = open_reader(host, job, *job.train, true, known);
  MachineOptions options;
  options.max_samples = open.batch;
  options.training = true;
  options.flags = TN_MACHINE_GIVEN_GRADIENTS;                               // such a machine needs no cost
  options.device = job.devices.empty() ? job.device : job.devices.front();  // statistics of whole minibatches
  const Layers layers = topology.layers(job.fit);
  const Machine machine = host.machine(parameters, layers, options);
  const std::set<std::string> needed = topology.inputs_of(job.fit);
  const uint64_t updates = updates_of(parameters);  // each commit counts, and dropout depends on the count
  const int64_t batches = job.training.pass_batches;
  int64_t samples = 0;
  for (int64_t batch = 0; batch < batches || batches == 0; ++batch) {
    if (Interrupt::signal() != 0) return -1;
    const std::vector<Array> arrays = open.reader.next();
    if (arrays.empty()) break;
    std::vector<Feed> feeds;
    for (size_t i = 0; i < arrays.size(); ++i) {
      std::string to = open.slots[i].name;
      for (const auto& [slot, layer] : open.feeding)
        if (slot == open.slots[i].name) to = layer;
      if (needed.count(to) > 0) feeds.push_back({to, arrays[i]});
    }
    machine.forward(feeds);
    end_step(machine, layers);
    const Array& first = arrays.front();
    samples += first.storage == TN_DENSE ? first.shape.at(0) : first.samples;
  }
  set_updates(parameters, updates);
  return samples;
}

}  // namespace tenon::cli

// SPDX-License-Identifier: Apache-2.0
#include "host/cli/planning.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tenon/tenon_updater.hpp>

#include "base/nearest.h"
#include "host/cli/cli.h"
#include "host/cli/job/fit.h"
#include "host/cli/job/topology.h"
#include "host/cli/job/updater.h"
#include "host/cli/table.h"

namespace tenon::cli {

namespace {

using nlohmann::json;

uint64_t product(const json& shape) {
  uint64_t result = 1;
  for (const json& extent : shape) result *= extent.get<uint64_t>();
  return result;
}

// Returns the bytes of the states of all updaters.
uint64_t state_bytes(const Host& host, const Job& job, const Parameters& parameters) {
  std::vector<UpdaterGroup> updaters = make_updater_groups(host, job);
  updaters.push_back({make_updater(host, job), {}});
  uint64_t bytes = 0;
  for (const UpdaterGroup& each : updaters)
    bytes += json::parse(each.updater.describe(parameters)).at("state_bytes").get<uint64_t>();
  return bytes;
}

// Returns the tables of the job: {name, rows, width, bytes, state_bytes, trained, minibatch_rows}. minibatch_rows: of
// which a minibatch has gradients, where the machine expects 16 in each sequence.
json tables_of(const Host& host, const Job& job, const Parameters& parameters, const json& plan) {
  std::map<std::string, json> shapes;
  std::vector<std::string> names;
  for (const json& parameter : json::parse(parameters.describe())) {
    names.push_back(parameter.at("name").get<std::string>());
    shapes[names.back()] = parameter.at("shape");
  }
  std::map<std::string, uint64_t> states;  // bytes, by parameter
  const std::vector<UpdaterGroup> groups = make_updater_groups(host, job);
  const auto is_of = [](const UpdaterGroup& group, const std::string& name) {
    return std::any_of(group.parameters.begin(), group.parameters.end(),
                       [&](const std::string& each) { return name == each || name.rfind(each + ".", 0) == 0; });
  };
  const auto add_states = [&](const Updater& updater, const auto& updates) {
    for (const json& state : json::parse(UpdaterState(updater, parameters).describe())) {
      const std::string parameter = state.at("parameter");
      if (updates(parameter)) states[parameter] += sizeof(float) * product(state.at("shape"));
    }
  };
  for (const UpdaterGroup& group : groups)
    add_states(group.updater, [&](const std::string& name) { return is_of(group, name); });
  add_states(make_updater(host, job), [&](const std::string& name) {
    return std::none_of(groups.begin(), groups.end(), [&](const UpdaterGroup& group) { return is_of(group, name); });
  });
  json tables = json::array();
  for (const std::string& name : job.tables) {
    const auto shape = shapes.find(name);
    if (shape == shapes.end() || shape->second.empty())
      throw Failure(kBadConfig,
                    "key \"tables\": \"" + name + "\" is no parameter with rows" + base::suggestion(name, names));
    const uint64_t rows = shape->second[0], elements = product(shape->second);
    uint64_t read = 0;
    bool trained = false;
    for (const json& gradient : plan.at("row_gradients"))
      if (gradient.at("parameter") == name) read = gradient.at("rows"), trained = true;
    tables.push_back({{"name", name},
                      {"rows", rows},
                      {"width", rows == 0 ? 0 : elements / rows},
                      {"bytes", sizeof(float) * elements},
                      {"state_bytes", states[name]},
                      {"trained", trained},
                      {"minibatch_rows", read}});
  }
  return tables;
}

// Adds the plugins that are loaded: {id, version, interface, requires, file}. Returns the plugin of each layer type.
std::map<std::string, json> add_plugins(json& plan, const Host& host) {
  std::map<std::string, json> of_types;
  json list = json::array();
  for (const json& plugin : json::parse(host.plugins())) {
    if (plugin.at("status") != "loaded") continue;
    const json &manifest = plugin.at("manifest"), &abi = manifest.at("abi");
    list.push_back({{"id", manifest.at("id")},
                    {"version", manifest.at("version")},
                    {"interface", abi.at("major").dump() + "." + abi.at("built").dump()},
                    {"requires", abi.at("major").dump() + "." + abi.at("required").dump()},
                    {"file", plugin.at("file")}});
    if (manifest.contains("layers"))
      for (const json& layer : manifest.at("layers")) of_types[layer.at("type")] = manifest.at("id");
  }
  plan["plugins"] = std::move(list);
  return of_types;
}

// Adds to each layer the plugin of its type, and which kernels of which plugins serve it: {kernel, plugin}.
void add_kernels(json& plan, const std::map<std::string, json>& plugins) {
  std::map<std::string, json*> layers;
  for (json& layer : plan.at("layers")) {
    const auto plugin = plugins.find(layer.at("type").get<std::string>());
    layer["plugin"] = plugin == plugins.end() ? json("") : plugin->second;
    layer["forward"] = layer["backward"] = json::array();
    layers[layer.at("name").get<std::string>()] = &layer;
  }
  for (const json& call : plan.at("calls"))
    for (const json& name : call.at("layers")) {
      const auto layer = layers.find(name.get<std::string>());
      if (layer == layers.end()) continue;
      json& kernels = (*layer->second)[call.at("phase").get<std::string>()];
      const json kernel = {{"kernel", call.at("kernel")}, {"plugin", call.at("plugin")}};
      if (std::find(kernels.begin(), kernels.end(), kernel) == kernels.end()) kernels.push_back(kernel);
    }
}

// Adds to `passed_over` of each layer the kernels that were not asked, since they are for another device or for other
// element types, or since their plugin is refused.
void add_unasked(json& plan, const Host& host) {
  const std::string compute = plan.at("compute") == "float64" ? "float64" : "float32", device = plan.at("device");
  for (const json& plugin : json::parse(host.plugins())) {
    if (plugin.at("manifest").is_null() || plugin.at("status") == "unused") continue;
    for (const json& kernel : plugin.at("manifest").value("kernels", json::array())) {
      const json& dtypes = kernel.at("dtypes");
      std::string reason;
      if (kernel.at("device") != device)
        reason = "it is for the device \"" + kernel.at("device").get<std::string>() + "\"";
      else if (std::find(dtypes.begin(), dtypes.end(), compute) == dtypes.end())
        reason = "it does not compute in " + compute;
      else if (plugin.at("status") == "refused")
        reason = "its plugin is refused: " + plugin.at("reason").get<std::string>();
      if (reason.empty()) continue;
      for (json& layer : plan.at("layers"))
        if (layer.at("type") == kernel.at("type"))
          layer["passed_over"].push_back({{"kernel", kernel.at("name")},
                                          {"plugin", plugin.at("manifest").at("id")},
                                          {"score", kernel.value("score", 0)},
                                          {"reason", reason}});
    }
  }
}

}  // namespace

json plan_job(const Host& host, const Job& job, const JobReader& reader, bool training) {
  const OpenReader open = open_reader(host, job, reader, !training, {}, true);
  Topology topology(host, job, reader, open);
  const Layers outputs = topology.layers(topology.outputs());
  const Parameters parameters = host.declare(outputs);
  MachineOptions wanted;
  wanted.max_samples = open.batch;
  wanted.training = training;
  set_devices(job, &wanted);
  if (training) wanted.immutable_parameters = immutable_parameters(job, topology, parameters);
  const Layers computed = training ? topology.layers(topology.trained()) : outputs;
  json plan = json::parse(topology.placed([&] { return host.machine(parameters, computed, wanted).plan(); }));
  if (training) plan["bytes"]["state"] = state_bytes(host, job, parameters);
  if (training) plan["whole_reason"] = open.whole_reason;
  if (training && !job.tables.empty()) plan["tables"] = tables_of(host, job, parameters, plan);
  add_kernels(plan, add_plugins(plan, host));
  add_unasked(plan, host);
  return plan;
}

std::string joined(const json& layers) {
  const std::string result = names_in(layers, " + ");
  return result.empty() ? "-" : result;
}

void require_backward(const json& plan) {
  const json& missing = plan.at("missing_backward");
  if (missing.empty()) return;
  const json& first = missing.front();
  throw Failure(kBadConfig, "the job cannot be trained: layer \"" + first.at("layer").get<std::string>() + "\" (" +
                                first.at("type").get<std::string>() + "): " + first.at("reason").get<std::string>() +
                                (missing.size() == 1 ? "" : "; and " + std::to_string(missing.size() - 1) + " more"));
}

}  // namespace tenon::cli

// SPDX-License-Identifier: Apache-2.0
#include "host/layers/topology_clone.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/nearest.h"
#include "core/error.h"
#include "core/parameter_set.h"
#include "host/layers/host_attributes.h"

namespace tenon::host {

namespace {

using nlohmann::json;

// Changes the JSON of a topology, the form in which files hold it.
class TopologyChange {
 public:
  TopologyChange(const Topology& topology, const CloneOptions& options) : layers_(topology.layers), options_(options) {
    for (const LayerRef& layer : topology.layers) names_.emplace(layer->name, layer->name);
    for (const auto& [before, now] : options.layers) known(before) = now;
    std::map<std::string, std::string> taken;  // the name before, by the name now
    for (const auto& [before, now] : names_) {
      const auto [other, fresh] = taken.emplace(now, before);
      if (!fresh)
        fail(TN_INVALID, SubjectName{now}, "the layers \"", other->second, "\" and \"", before,
             "\" would both be named \"", now, "\"");
    }
    check_parameters(topology);
  }

  // topology: the JSON of the topology, whose layers are in the same order.
  void apply(json& topology) const {
    for (size_t i = 0; i < layers_.size(); ++i) apply_to_layer(topology.at("layers").at(i), layers_[i]);
    for (json& output : topology.at("outputs")) output = output_now(output.get<std::string>());
  }

 private:
  std::string& known(const std::string& layer) {
    const auto found = names_.find(layer);
    if (found != names_.end()) return found->second;
    std::vector<std::string> all;
    for (const auto& [name, now] : names_) all.push_back(name);
    fail(TN_NOT_FOUND, SubjectName{layer}, "the topology has no layer \"", layer, "\"", base::suggestion(layer, all));
  }

  void check_parameters(const Topology& topology) {
    std::set<std::string> all;
    for (const ParameterDeclaration& each : topology.declarations()) all.insert(each.name);
    for (const auto& [before, now] : options_.parameters)
      if (std::none_of(all.begin(), all.end(),
                       [&, above = before](const std::string& name) { return is_below(name, above); }))
        fail(TN_NOT_FOUND, SubjectName{before}, "the topology has no parameter \"", before, "\"",
             base::suggestion(before, {all.begin(), all.end()}));
    for (const CloneOptions::Setting& setting : options_.settings) static_cast<void>(known(setting.layer));
  }

  [[nodiscard]] std::string parameter_now(const std::string& name) const {
    const CloneOptions::Rename* best = nullptr;
    for (const auto& each : options_.parameters)
      if (is_below(name, each.first) && (best == nullptr || each.first.size() > best->first.size())) best = &each;
    return best == nullptr ? name : best->second + name.substr(best->first.size());
  }

  [[nodiscard]] std::string layer_now(const std::string& name) const {
    const auto found = names_.find(name);
    return found == names_.end() ? name : found->second;
  }
  // Of "name" or "name:1".
  [[nodiscard]] std::string output_now(const std::string& name) const {
    if (name.empty() || names_.contains(name)) return layer_now(name);
    const size_t colon = name.rfind(':');
    return layer_now(name.substr(0, colon)) + name.substr(colon);
  }

  void apply_to_layer(json& layer, const LayerRef& of) const {
    const std::string& before = of->name;
    layer["name"] = layer_now(before);
    for (const char* const part : {"scan", "cond"})
      if (layer.contains(part)) layer[part]["name"] = layer_now(layer[part]["name"].get<std::string>());
    if (layer.contains("sequence")) layer["sequence"] = layer_now(layer["sequence"].get<std::string>());
    if (layer.contains("inputs"))
      for (json& input : layer["inputs"]) input = output_now(input.get<std::string>());
    if (!layer.contains("attributes")) {
      refuse_settings(*of);
      return;
    }
    if (layer.contains("inner"))
      for (json& inner : layer["inner"])
        inner["name"] = layer_now(before) + inner["name"].get<std::string>().substr(before.size());
    rename_parameters(layer["attributes"], of);
    for (const CloneOptions::Setting& setting : options_.settings) {
      if (setting.layer != before) continue;
      layer["attributes"].erase(setting.attribute);
      if (!std::holds_alternative<Absent>(setting.value))
        layer["attributes"][setting.attribute] = to_json(setting.value);
    }
  }

  // A data layer, or a part of a scan or of branches, has no attributes.
  void refuse_settings(const Layer& layer) const {
    for (const CloneOptions::Setting& setting : options_.settings)
      if (setting.layer == layer.name)
        fail(TN_INVALID, ComponentName{layer_label(layer)}, SubjectName{setting.attribute}, "unknown attribute \"",
             setting.attribute, "\"");
  }

  // Renames parameter_name, and states the name of each parameter that does not follow from it.
  void rename_parameters(json& attributes, const LayerRef& layer) const {
    const std::string prefix = parameter_now(layer->parameter_name);
    attributes[kParameterName] = prefix;
    for (const LayerRef& leaf : leaves_of(layer))
      for (const auto* const list : {&leaf->parameters, &leaf->buffers})
        for (const LayerParameter& each : *list) {
          const std::string stated = setting_name({each.path, kNameKey}), now = parameter_now(each.name);
          attributes.erase(stated);
          if (now != prefix + "." + each.path) attributes[stated] = now;
        }
  }

  const std::vector<LayerRef>& layers_;
  const CloneOptions& options_;
  std::map<std::string, std::string> names_;  // of layers now, by those before
};

}  // namespace

std::vector<LayerOutput> clone(LayerFactory& factory, const Topology& topology, const CloneOptions& options) {
  json changed = topology.to_json();
  TopologyChange(topology, options).apply(changed);
  return factory.from_json(changed, nullptr).outputs;
}

}  // namespace tenon::host

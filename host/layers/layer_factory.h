// Makes layers: checks attributes and inputs, runs plan and expand, applies host attributes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/topology.h"
#include "host/layers/ragged_symbols.h"
#include "host/plugins/registry.h"

namespace tenon::host {

using namespace core;

// Makes the layers of a host. host/layers/host_attributes.h lists the attributes that every layer has.
class LayerFactory {
 public:
  explicit LayerFactory(Registry& registry) : registry_(registry) {}

  [[nodiscard]] LayerRef data(const std::string& name, DataSource source);
  // An empty name is replaced by "<type>_<number>", with a new number each time. Errors name the layer, the attribute
  // or port, and both shapes.
  [[nodiscard]] LayerOutput layer(const std::string& type, const std::string& name, std::vector<LayerOutput> inputs,
                                  const Values& attributes);
  // Makes the layers of a topology that Topology::to_json has written, and returns its outputs. `json` is untrusted.
  [[nodiscard]] std::vector<LayerOutput> from_json(const nlohmann::json& json);

 private:
  Registry& registry_;
  RaggedSymbols symbols_;
  std::map<std::string, uint64_t> drawn_;  // by type: how many names were drawn
};

}  // namespace tenon::host

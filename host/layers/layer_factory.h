// Makes layers: checks attributes and inputs, runs plan and expand, applies host attributes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/topology.h"
#include "host/layers/row_symbols.h"
#include "host/plugins/registry.h"

namespace tenon {

// Attributes that every layer has are listed in host/layers/host_attributes.h.
class LayerFactory {
 public:
  explicit LayerFactory(Registry& registry) : registry_(registry) {}

  [[nodiscard]] LayerRef data(const std::string& name, DataSource source);
  // name empty: drawn from this factory, never twice. Errors name the layer, the attribute or port, and both shapes.
  [[nodiscard]] Expression layer(const std::string& type, const std::string& name, std::vector<Expression> inputs,
                                 const Values& attributes);
  // The outputs of Topology::to_json; `json` is untrusted.
  [[nodiscard]] std::vector<Expression> from_json(const nlohmann::json& json);

 private:
  Registry& registry_;
  RowSymbols symbols_;
  std::map<std::string, uint64_t> drawn_;  // by type
};

}  // namespace tenon

// Making layers: attributes are checked, plan and expand are run, host attributes are honoured.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/topology.h"
#include "host/registry.h"

namespace tenon {

// Numbers for the dimensions that count rows of sequences. One name, one number; TN_SYMBOL_FIRST_ROWS and above.
class RowSymbols {
 public:
  [[nodiscard]] int32_t of(const std::string& name);

 private:
  std::map<std::string, int32_t> known_;
};

// Attributes that every layer has without its plugin knowing:
//   parameter_name                  shares parameters by name; default: the layer's name
//   act                             type of a layer that is applied to the output
//   param.<suffix>.learning_rate    multiplier for one parameter
//   param.<suffix>.decay            multiplier of the weight decay
//   param.<suffix>.sparse           false: its gradient is dense, also where the layer allows rows
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

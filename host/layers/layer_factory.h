// Making layers: attributes are checked, plan and expand are run, host attributes are honoured.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/topology.h"
#include "host/plugins/registry.h"

namespace tenon {

// Numbers for the dimensions that count rows of sequences, TN_SYMBOL_FIRST_ROWS and above.
class RowSymbols {
 public:
  // Of the sequences of this name, or of a part of them: "inner sequences", "entries".
  [[nodiscard]] int32_t of(const std::string& sequence, const std::string& part);
  // Of the rows of `first`, then those of `second`, in each sequence.
  [[nodiscard]] int32_t joined(int32_t first, int32_t second);
  // A message that tells shapes, with names in place of the numbers.
  [[nodiscard]] std::string named(const std::string& message) const;

 private:
  int32_t add(std::string name);
  [[nodiscard]] const std::string& name(int32_t symbol) const;

  std::map<std::pair<std::string, std::string>, int32_t> known_;
  std::map<std::pair<int32_t, int32_t>, int32_t> joined_;
  std::vector<std::string> names_;  // by symbol
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

// Makes layers: checks attributes and inputs, runs plan and expand, applies host attributes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/files/model_file.h"
#include "core/topology.h"
#include "host/layers/cond_layers.h"
#include "host/layers/layer_restorer.h"
#include "host/layers/layer_stepper.h"
#include "host/layers/ragged_symbols.h"
#include "host/layers/scan_layers.h"
#include "host/plugins/registry.h"

namespace tenon::host {

using namespace core;

// The outputs of a topology in a model file, and what the migrations of its layers changed.
struct RestoredTopology {
  std::vector<LayerOutput> outputs;
  TensorChanges changes;  // of the file's tensors
};

// A layer in a step of generation.
struct SteppedLayer {
  LayerRef layer;  // the first dimension of its outputs is the samples; outputs that a step does not make are empty
  StepParts parts;
};

// Makes the layers of a host. host/layers/host_attributes.h lists the attributes that every layer has.
class LayerFactory {
 public:
  explicit LayerFactory(Registry& registry) : registry_(registry) {}

  [[nodiscard]] LayerRef data(const std::string& name, DataSource source);
  // An empty name is replaced by "<type>_<number>", with a new number each time. like: a layer of this type, whose own
  // attributes take the place of defaults, or null. Errors name the layer, the attribute or port, and both shapes.
  [[nodiscard]] LayerOutput layer(const std::string& type, const std::string& name, std::vector<LayerOutput> inputs,
                                  const Values& attributes, const Layer* like = nullptr);
  // Returns inputs of a layer of this type that are given by the names of their ports, one for each, in the order of
  // the ports. TN_INVALID names an unknown port, or one that is given twice.
  [[nodiscard]] std::vector<LayerOutput> in_port_order(const std::string& type, const std::string& name,
                                                       const std::vector<LayerOutput>& inputs,
                                                       const std::vector<std::string>& ports);
  // The names of symbolic dimensions, for texts.
  [[nodiscard]] const SymbolNames& symbols() const { return symbols_; }
  // Whether the type of a layer offers "tenon.step/1".
  [[nodiscard]] bool has_step(const Layer& layer) const;
  // Makes one step of a layer of such a type. inputs: in the step, absent where they have no row for each step.
  [[nodiscard]] SteppedLayer step(const Layer& whole, std::vector<LayerOutput> inputs, const StepSources& sources);
  // Begins a scan over sequences; an empty name is generated. The scan borrows the factory.
  [[nodiscard]] std::shared_ptr<OpenScan> begin_scan(const std::string& name, const LayerOutput& over, bool reverse);
  // Begins branches over the rows of `over`; an empty name is generated. They borrow the factory.
  [[nodiscard]] std::shared_ptr<OpenCond> begin_cond(const std::string& name, const LayerOutput& over,
                                                     std::vector<LayerOutput> rows);
  // Makes the layers of a topology that Topology::to_json has written. It is untrusted. tensors: those of the file,
  // which migrations read; null: there is no file, and layers that need a migration are refused.
  [[nodiscard]] RestoredTopology from_json(const nlohmann::json& described, StoredTensors* tensors);

 private:
  // restorer: of a layer of a model file, else null.
  [[nodiscard]] LayerOutput make(std::string type, const std::string& name, std::vector<LayerOutput> inputs,
                                 Values attributes, LayerRestorer* restorer);
  [[nodiscard]] std::string drawn_name(const std::string& type);

  Registry& registry_;
  RaggedSymbols symbols_;
  std::map<std::string, uint64_t> drawn_;  // by type: how many names were drawn
};

}  // namespace tenon::host

// Copies of topologies under other names and with other attributes. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/attribute.h"
#include "core/topology.h"
#include "host/layers/layer_factory.h"

namespace tenon::host {

using namespace core;

struct CloneOptions {
  using Rename = std::pair<std::string, std::string>;  // before, now
  struct Setting {
    std::string layer;  // its name before
    std::string attribute;
    Value value;
  };
  std::vector<Rename> layers;
  std::vector<Rename> parameters;  // each with everything below it; the longest name decides
  std::vector<Setting> settings;   // attributes of layers, which replace those that they have; Absent removes one
};

// Makes all layers of a topology anew, with these changes, and returns its outputs. Layers without a parameter rename
// share their parameters by name with those that they were made from. TN_NOT_FOUND names a layer or parameter that the
// topology lacks, TN_INVALID two layers that get one name, or what a changed attribute is refused for.
[[nodiscard]] std::vector<LayerOutput> clone(LayerFactory& factory, const Topology& topology,
                                             const CloneOptions& options);

}  // namespace tenon::host

// Records the body of a layer into the graph. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "host/compile/lowering/lowering.h"

namespace tenon::host {

// The layer that is lowered, and its values.
struct Body {
  const Layer* layer = nullptr;
  const LayerType* type = nullptr;
  std::vector<ValueId> inputs, parameters;
  std::vector<size_t> buffers;           // indices into Lowered::buffers
  std::vector<size_t> carried;           // indices into Lowered::carried
  std::vector<ValueId> outputs, states;  // results; kNoValue until they are set
};

// The state of the lowering that a recording needs.
struct RecordingSite {
  GraphWriter writer;
  const std::map<ValueId, ValueId>& weights;  // ids of a sparse feed -> the values of its entries
  int32_t& draws;                             // random draws of the machine so far
  bool training;
  int32_t free_symbol;  // the first that nothing uses before the first order of steps
  bool nested;          // scans of the body are to run within the steps of a scan around the layer
};

// Calls lower of the layer's type, which sets body.outputs and body.states. Errors name the layer.
void record(Lowered& lowered, Body& body, const RecordingSite& site);

}  // namespace tenon::host

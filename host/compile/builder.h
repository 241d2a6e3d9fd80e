// A layer's body, as its plugin's lower records it into the graph. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "host/compile/lowering.h"

namespace tenon {

// The layer at hand, and the values around it.
struct Body {
  const Layer* layer = nullptr;
  const LayerType* type = nullptr;
  std::vector<ValueId> inputs, parameters;
  std::vector<size_t> buffers;           // numbers in Lowered::buffers
  std::vector<ValueId> outputs, states;  // what is made; kNoValue until then
};

struct RecordingSite {
  GraphWriter writer;
  const std::map<ValueId, ValueId>& weights;  // ids of a sparse feed -> the values of its entries
  int32_t& draws;                             // random draws of the machine that have a number
  bool training;
};

// Fills outputs and states in. Errors name the layer.
void record(Lowered& lowered, Body& body, const RecordingSite& site);

}  // namespace tenon

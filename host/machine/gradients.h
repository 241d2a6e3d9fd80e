// The gradients of parameters: the nodes that compute them, and places for the dense ones.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/graph/graph.h"
#include "core/parameter_set.h"
#include "host/compile/lowering.h"
#include "host/machine/costs.h"

namespace tenon {

struct MachineOptions;

// Appends the backward nodes of all parameters that are not immutable, and fills in ParameterUse::gradient. TN_INVALID
// where there is no cost, or nothing to train.
void differentiate_parameters(Graph& graph, Lowered& lowered, const std::vector<Cost>& costs,
                              const MachineOptions& options, Inverses& inverses);

struct PlacedGradient {
  ValueId value = kNoValue;
  size_t entry = 0;     // of the set
  uint64_t offset = 0;  // bytes into the gradients
  uint64_t bytes = 0;   // padding included
};
// Dense gradients lie in the order of the set and padded like it, so that neighbours in the set are neighbours here.
[[nodiscard]] std::vector<PlacedGradient> place_gradients(const Graph& graph, const Lowered& lowered,
                                                          const ParameterSet& set);
}  // namespace tenon

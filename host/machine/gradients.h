// The gradients of parameters: the nodes that compute them, and the layout of the dense ones.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/graph/graph.h"
#include "core/parameter_set.h"
#include "host/compile/lowering.h"
#include "host/machine/costs.h"

namespace tenon::host {

using namespace core;

struct MachineOptions;

// Appends the backward nodes of all parameters that are not immutable, and sets ParameterUse::gradient. Throws
// TN_INVALID if there is no cost, or if all parameters are immutable.
void differentiate_parameters(Graph& graph, Lowered& lowered, const std::vector<Cost>& costs,
                              const MachineOptions& options, Inverses& inverses);

// The place of a dense gradient in the section of gradients of a machine's memory.
struct PlacedGradient {
  ValueId value = kNoValue;
  size_t entry = 0;     // number in the set
  uint64_t offset = 0;  // bytes into the section
  uint64_t bytes = 0;   // padding included
};
// Places dense gradients in the order and with the padding of the set, so that adjacent parameters have adjacent
// gradients.
[[nodiscard]] std::vector<PlacedGradient> place_gradients(const Graph& graph, const Lowered& lowered,
                                                          const ParameterSet& set);
}  // namespace tenon::host

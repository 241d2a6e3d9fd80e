// The gradients of parameters: the nodes that compute them, and the layout of the dense ones.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/graph/passes/passes.h"
#include "core/parameter_set.h"
#include "core/topology.h"
#include "host/compile/lowering/lowering.h"
#include "host/machine/costs.h"

namespace tenon::host {

using namespace core;

struct MachineOptions;

// An output of a machine, and its gradient, which the application gives for each backward: an external value.
struct GivenGradient {
  ValueId value = kNoValue;
  ValueId gradient = kNoValue;
};
// Returns the value of an output whose gradient can be given: of dense or ragged floats, also those of a data layer,
// then in the compute type where a layer reads them in it. kNoValue for other outputs.
[[nodiscard]] ValueId value_with_gradient(const Graph& graph, const Lowered& lowered, const LayerOutput& output);
// Adds a gradient to the graph for each such output. TN_INVALID if there is none.
[[nodiscard]] std::vector<GivenGradient> add_given_gradients(Graph& graph, const Topology& topology,
                                                             const Lowered& lowered);

// Where backward begins: the costs, or outputs whose gradients are given.
struct BackwardStart {
  const std::vector<Cost>& costs;
  const std::vector<GivenGradient>& given;
};

// Appends the backward nodes of all parameters that are not immutable and, if they are wanted, of data layers of
// floats; sets ParameterUse::gradient and Feed::gradient. Throws TN_INVALID if there is no cost to begin at, or if all
// parameters are immutable and no other gradient is wanted. missing: as of differentiate.
void differentiate_machine(Graph& graph, Lowered& lowered, const BackwardStart& start, const MachineOptions& options,
                           Inverses& inverses, std::vector<MissingBackward>* missing);

// Returns the parameter of that name, which has a gradient.
[[nodiscard]] const ParameterUse& parameter_with_gradient(const Lowered& lowered, const std::string& name);

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

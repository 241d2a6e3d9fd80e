// A topology compiled for one machine: graph, prepared calls and memory, for given bounds of samples and rows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/parameter_set.h"
#include "core/topology.h"
#include "host/compile/call_array.h"
#include "host/compile/lowering.h"
#include "host/compile/memory_plan.h"
#include "host/machine/costs.h"
#include "host/machine/gradients.h"
#include "host/machine/machine_memory.h"
#include "host/machine/sparse_gradient.h"
#include "host/plugins/device.h"

namespace tenon {

struct MachineOptions {
  tn_dtype compute = TN_F32;
  int64_t max_samples = 0;
  bool training = false;
  bool keep_all = false;
  uint64_t seed = 0;  // of draws; the step is the number of updates that the set had, 0 where not training
  // Parameters without gradient and buffers that keep their values; a name means everything below it too.
  std::vector<std::string> immutable;
  int64_t max_rows = 0;  // bound of every dimension of rows that is fed; 0: grows as needed

  [[nodiscard]] bool is_immutable(const std::string& name) const;
};

// Bounds of the dimensions of rows that grew beyond the first ones, by symbol.
using RowBounds = std::map<int32_t, int64_t>;

// Everything that depends on the bounds: a machine that grows replaces its CompiledModel by a larger one.
struct CompiledModel {
  RowBounds row_bounds;
  std::vector<int64_t> bounds;  // per symbol
  Lowered lowered;              // its graph has moved into calls
  Inverses inverses;
  std::vector<Cost> costs;
  std::vector<ValueId> kept;              // readable after the last call
  std::vector<PlacedGradient> gradients;  // the dense ones, in the order of the set
  std::vector<std::unique_ptr<SparseGradient>> sparse_gradients;
  std::unique_ptr<CallArray> calls;
  MemoryPlan memory_plan;
  MachineMemory memory;  // empty where the set has no values: then it can be described, not run
};

// Where a machine is compiled for.
struct CompileTarget {
  ParameterSet& set;
  Registry& registry;
  const std::shared_ptr<Device>& device;
};

// Errors name the option, the parameter or the layer.
[[nodiscard]] CompiledModel compile(const Topology& topology, const CompileTarget& target,
                                    const MachineOptions& options, RowBounds row_bounds);

}  // namespace tenon

// A topology compiled for one machine: graph, prepared calls and memory, for given bounds of samples and rows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/parameter_set.h"
#include "core/topology.h"
#include "host/compile/call_array.h"
#include "host/compile/lowering/lowering.h"
#include "host/compile/memory_plan.h"
#include "host/machine/costs.h"
#include "host/machine/gradients.h"
#include "host/machine/machine_memory.h"
#include "host/machine/sparse_gradient.h"
#include "host/machine/tables/table_reads.h"
#include "host/plugins/device.h"

namespace tenon::host {

using namespace core;

class RowSource;
class Team;

struct MachineOptions {
  tn_dtype compute = TN_F32;
  uint32_t precision = TN_PRECISION_FULL;  // of products; with another one than FULL, updates skip steps (Updater)
  int64_t max_samples = 0;
  bool training = false;
  bool keep_all = false;
  uint64_t seed = 0;  // of draws; their step is the number of updates of the set, 0 if not training
  // Parameters without a gradient, and buffers that keep their values. A name includes all names below it: "D" includes
  // "D.weight".
  std::vector<std::string> immutable;
  bool data_gradients = false;   // whether backward computes gradients of data layers
  bool given_gradients = false;  // whether backward begins with given gradients of outputs, not with the costs
  bool runs_once = false;        // too few forwards follow a change of parameters to prepare what depends on them alone
  int64_t max_rows = 0;          // bound of every ragged dimension that is fed; 0: grows as needed
  Checks checks;
  uint32_t shards = 0;        // of a minibatch; 0: one for each device
  Team* team = nullptr;       // the processes among which they are divided; null: this one computes all
  RowSource* rows = nullptr;  // of tables of which this process owns no rows; null: the team has them
  bool results_only = false;  // outputs need not be kept, where a device computes several shards one after another

  [[nodiscard]] bool is_immutable(const std::string& name) const;
};

// Bounds of the ragged dimensions that have grown beyond their first bound, by symbol.
using RaggedBounds = std::map<int32_t, int64_t>;

// A layer through which no gradient passes, since its kernel has no backward: of a model that can only be described.
struct UntrainableLayer {
  std::string layer, type, plugin, kernel, reason;
};

// Everything that depends on the bounds: a machine that grows replaces its CompiledModel by a larger one.
struct CompiledModel {
  RaggedBounds ragged_bounds;
  std::vector<int64_t> bounds;  // per symbol
  Lowered lowered;              // lowered.graph is empty: calls->graph() has it
  Inverses inverses;
  std::vector<MachineTable> tables;  // whose rows lie with their owners
  std::vector<Cost> costs;
  std::vector<GivenGradient> given;       // of the outputs, if backward begins with them
  std::vector<ValueId> kept;              // readable after the last call
  std::vector<PlacedGradient> gradients;  // the dense ones, in the order of the set
  std::vector<std::unique_ptr<SparseGradient>> sparse_gradients;
  std::unique_ptr<CallArray> calls;
  std::optional<uint64_t> version;  // of the parameters for which the calls of Phase::kOnce have run; empty: unknown
  std::vector<UntrainableLayer> untrainable;
  MemoryPlan memory_plan;
  MachineMemory memory;  // without a block if the set has no values: the model can be described, not run

  // Returns the row-sparse gradient of a value; null if it is dense.
  [[nodiscard]] const SparseGradient* sparse_gradient(ValueId value) const;
};

// The objects that a model is compiled for.
struct CompileTarget {
  ParameterSet& set;
  Registry& registry;
  const std::shared_ptr<Device>& device;
  HostAccess& access;  // of the machine
};

// Compiles a topology for its bounds. Errors name the option, the parameter or the layer.
[[nodiscard]] CompiledModel compile(const Topology& topology, const CompileTarget& target,
                                    const MachineOptions& options, RaggedBounds ragged_bounds);

}  // namespace tenon::host

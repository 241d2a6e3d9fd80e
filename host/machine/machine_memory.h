// The memory of a machine: one block of its device for step control, feeds, constants and
// carried states, gradients, arena and workspace.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "core/graph/graph.h"
#include "core/parameter_set.h"
#include "host/plugins/device.h"

namespace tenon::host {

using namespace core;

struct CompiledModel;

struct MachineMemory {
  struct Sections {  // offsets into the block, bytes
    uint64_t control = 0, feeds = 0, fixed = 0, gradients = 0, arena = 0, workspace = 0, total = 0;
  };
  struct FeedMemory {
    std::byte* own = nullptr;    // in the block, for arrays that are copied
    std::vector<ValueId> views;  // the value and all its views
  };

  Sections sections;
  DeviceMemory block;
  std::map<ValueId, FeedMemory> fed;  // by value: everything that a minibatch feeds
  // Step control. Lies in the block, because kernels read it.
  int64_t* symbols = nullptr;  // sizes, by symbol
  tn_random* random = nullptr;
};

// Computes model.memory.sections.
void lay_out(CompiledModel& model);
// Allocates the block and binds every value of the model to its place in the block or in the set. Call lay_out before.
void allocate(CompiledModel& model, ParameterSet& set, const std::shared_ptr<Device>& device, uint64_t seed);

}  // namespace tenon::host

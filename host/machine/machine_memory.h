// The memory of a machine: one block of its device for step control, feeds, gradients, arena and workspace.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "core/graph/graph.h"
#include "core/parameter_set.h"
#include "host/plugins/device.h"

namespace tenon {

struct CompiledModel;

struct MachineMemory {
  struct Sections {  // offsets into the block, bytes
    uint64_t control = 0, feeds = 0, gradients = 0, arena = 0, workspace = 0, total = 0;
  };
  struct Fed {
    std::byte* own = nullptr;    // in the block, for arrays that are copied
    std::vector<ValueId> views;  // the value and all that lie in its memory
  };

  Sections sections;
  DeviceMemory block;
  std::map<ValueId, Fed> fed;  // by value, of all that comes from outside with every minibatch
  // Step control, in the block, where kernels read it.
  int64_t* symbols = nullptr;  // sizes, by symbol
  tn_random* random = nullptr;
};

// Fills model.memory.sections in.
void lay_out(CompiledModel& model);
// Allocates the block and binds every value of the model to its place there or in the set. After lay_out.
void allocate(CompiledModel& model, ParameterSet& set, const std::shared_ptr<Device>& device, uint64_t seed);

}  // namespace tenon

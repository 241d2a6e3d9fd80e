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
#include "host/plugins/host_access.h"

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

  // A parameter or buffer that calls read.
  struct Resident {
    Residence residence;
    Home::Part part;
    [[nodiscard]] std::byte* data() const { return residence.data() + part.offset; }
  };

  Sections sections;
  DeviceMemory block;
  std::map<ValueId, FeedMemory> fed;  // by value: everything that a minibatch feeds
  std::vector<Resident> residents;   // the parameters that are not in caches, then the buffers, in the order of Lowered
  size_t first_buffer = 0;           // in residents
  std::vector<DeviceMemory> caches;  // by number in CompiledModel::tables
  // Step control, as the host reads and writes it: in the block, from which kernels read it, or in `control`, from
  // which it is copied to the block.
  Buffer control;
  int64_t* symbols = nullptr;     // sizes, by symbol
  std::byte* inverses = nullptr;  // of them, in the compute type, 8 bytes apart
  tn_random* random = nullptr;
  // The same in the block.
  int64_t* device_symbols = nullptr;
  tn_random* device_random = nullptr;
};

// Computes model.memory.sections.
void lay_out(CompiledModel& model);
// Allocates the block and binds every value of the model to its place in the block or in the set. Call lay_out before.
void allocate(CompiledModel& model, ParameterSet& set, HostAccess& access, const tn_random& random);
// Copies the step control to the block, if it is not there.
void put_control(const MachineMemory& memory, HostAccess& access);
// Brings the newest parameters and buffers to the device.
void bring_residents(const MachineMemory& memory);

}  // namespace tenon::host

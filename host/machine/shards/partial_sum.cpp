// SPDX-License-Identifier: Apache-2.0
#include "host/machine/shards/partial_sum.h"

#include "host/machine/device_machine.h"

namespace tenon::host {

PartialSum::PartialSum(DeviceMachine& machine)
    : machine_(machine),
      dense_(machine.device(), machine.dense_gradients().size()),
      memory_id_(std::make_shared<const MemoryId>()) {
  for (const auto& like : machine.model().sparse_gradients) {
    const ParameterEntry& entry = machine.set()->entries()[like->entry()];
    sparse_.push_back(
        std::make_unique<SparseGradient>(like->value(), like->entry(), entry, like->dtype(), machine.access()));
    sparse_.back()->resize(like->capacity());
  }
  for (const MergedBuffer& buffer : machine.merged_buffers())
    next_values_.emplace(buffer.number, DeviceMemory(machine.device(), buffer.bytes));
}

void PartialSum::reserve_rows(size_t number, int64_t added) { make_room(*sparse_[number], added, memory_id_); }

}  // namespace tenon::host

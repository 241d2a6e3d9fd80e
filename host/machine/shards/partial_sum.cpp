// SPDX-License-Identifier: Apache-2.0
#include "host/machine/shards/partial_sum.h"

#include <utility>

#include "host/machine/device_machine.h"

namespace tenon::host {

std::vector<MergedBuffer> merged_buffers(const DeviceMachine& machine) {
  std::vector<MergedBuffer> buffers;
  const std::vector<BufferUse>& uses = machine.model().lowered.buffers;
  for (size_t i = 0; i < uses.size(); ++i) {
    const ParameterEntry& entry = machine.set()->find(uses[i].name);
    if (uses[i].next == kNoValue || machine.options().is_immutable(uses[i].name) || entry.count == 0) continue;
    buffers.push_back({i, entry.count, tn_dtype_storage(machine.options().compute, entry.count), entry.merge});
  }
  return buffers;
}

void copy_values(ShardValues& to, ShardValues& from) {
  DeviceMachine& machine = to.machine();
  HostAccess& access = machine.access();
  const std::span<std::byte> dense = from.dense_gradients();
  access.move(to.dense_gradients().data(), dense.data(), dense.size());
  for (size_t i = 0; i < machine.model().sparse_gradients.size(); ++i) {
    to.sparse_gradient(i).clear();
    to.reserve_rows(i, from.sparse_gradient(i).count());
    to.sparse_gradient(i).copy(from.sparse_gradient(i));
  }
  for (const MergedBuffer& buffer : merged_buffers(machine))
    access.move(to.next_value(buffer.number), from.next_value(buffer.number), buffer.bytes);
}

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
  for (const MergedBuffer& buffer : merged_buffers(machine))
    next_values_.emplace(buffer.number, DeviceMemory(machine.device(), buffer.bytes));
}

void PartialSum::reserve_rows(size_t number, int64_t added) {
  SparseGradient& gradient = *sparse_[number];
  const int64_t capacity = gradient.capacity_for(added);
  if (capacity == gradient.capacity()) return;
  auto memory_id = std::make_shared<const MemoryId>();
  gradient.resize(capacity);
  memory_id_ = std::move(memory_id);
}

}  // namespace tenon::host

// SPDX-License-Identifier: Apache-2.0
#include "host/machine/shards/shard_values.h"

#include <utility>

#include "host/machine/device_machine.h"

namespace tenon::host {

bool make_room(SparseGradient& gradient, int64_t added, std::shared_ptr<const MemoryId>& memory_id) {
  const int64_t capacity = gradient.capacity_for(added);
  if (capacity == gradient.capacity()) return false;
  auto other = std::make_shared<const MemoryId>();
  gradient.resize(capacity);
  memory_id = std::move(other);
  return true;
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
  for (const MergedBuffer& buffer : machine.merged_buffers())
    access.move(to.next_value(buffer.number), from.next_value(buffer.number), buffer.bytes);
}

}  // namespace tenon::host

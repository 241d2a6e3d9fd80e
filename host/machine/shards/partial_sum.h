// A sum over some shards of a minibatch, kept while their machine computes others. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "host/machine/shards/shard_values.h"
#include "host/plugins/device.h"

namespace tenon::host {

using namespace core;

// On the device of the machine, which it borrows.
class PartialSum final : public ShardValues {
 public:
  explicit PartialSum(DeviceMachine& machine);

  [[nodiscard]] DeviceMachine& machine() override { return machine_; }
  [[nodiscard]] std::span<std::byte> dense_gradients() const override { return {dense_.data(), dense_.size()}; }
  [[nodiscard]] SparseGradient& sparse_gradient(size_t number) const override { return *sparse_[number]; }
  void reserve_rows(size_t number, int64_t added) override;
  [[nodiscard]] void* next_value(size_t number) const override { return next_values_.at(number).data(); }
  [[nodiscard]] const std::shared_ptr<const MemoryId>& memory_id() const override { return memory_id_; }

 private:
  DeviceMachine& machine_;
  DeviceMemory dense_;
  std::vector<std::unique_ptr<SparseGradient>> sparse_;
  std::map<size_t, DeviceMemory> next_values_;  // by number of the buffer
  std::shared_ptr<const MemoryId> memory_id_;
};

}  // namespace tenon::host

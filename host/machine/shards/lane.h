// The shards of a minibatch that one machine of a device computes. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "host/machine/device_machine.h"
#include "host/machine/shards/partial_sum.h"
#include "host/machine/shards/shard_record.h"
#include "host/machine/shards/shard_sum.h"
#include "host/machine/shards/shard_tree.h"

namespace tenon::host {

using namespace core;

// A sum that a process has: a node of the tree of shards.
struct SummedNode : ShardSpan {
  ShardValues* values;
};

// One shard, whose values stay in the machine, or several, one after another. Of those the machine has the values of
// the last one, and the others are added up as far as the tree allows: as in binary counting, so that at most one sum
// is kept for each level of the tree.
class Lane : base::NotCopied {
 public:
  // Borrows the sums.
  Lane(std::unique_ptr<DeviceMachine> machine, const ShardSpan& shards, ShardSums& sums);

  [[nodiscard]] DeviceMachine& machine() const { return *machine_; }
  [[nodiscard]] size_t first() const { return shards_.first; }
  [[nodiscard]] size_t count() const { return shards_.end - shards_.first; }
  // What the shard of that place in the lane has measured.
  [[nodiscard]] Shard& shard(size_t place);
  void drop_outputs();

  // After a forward of the shard: keeps what it has measured.
  void record(size_t place);
  // Before the forward of another shard: forgets the sums, or keeps what the last backward has left.
  void clear_sums();
  void keep_last();
  // After a backward of the shard: adds what it has left. Enqueues the work. dense: whether dense gradients are added,
  // too.
  void add(size_t place, const ShardTree& tree, bool dense);
  // The sums so far, in the order of their shards.
  [[nodiscard]] const std::vector<SummedNode>& nodes() const { return nodes_; }
  // The same with what a backward of the shard will leave.
  [[nodiscard]] std::vector<SummedNode> nodes_with(size_t place) const;

 private:
  [[nodiscard]] bool is_in_machine(const SummedNode& node) const { return node.values == machine_.get(); }

  std::unique_ptr<DeviceMachine> machine_;
  ShardSpan shards_;
  ShardSums& sums_;
  std::vector<std::unique_ptr<ShardRecord>> records_;  // by place; of several shards
  std::vector<SummedNode> nodes_;
  std::vector<std::unique_ptr<PartialSum>> blocks_;
  size_t used_ = 0;  // blocks, by the first nodes
};

}  // namespace tenon::host

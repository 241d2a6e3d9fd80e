// The sum over two nodes of the tree of shards. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "host/compile/operand_call.h"
#include "host/machine/device_machine.h"

namespace tenon::host {

using namespace core;

// Nodes of the tree of shards, at least two: to, from, and nodes behind it that were to be added to it.
using ShardNodes = std::vector<ShardValues*>;

// Adds the gradients of a node to those of another one, and merges the next values of their buffers by the rules that
// their layers state (TN_MERGE_*). Dense gradients of the nodes behind are added, too, each to the node before it, all
// in one pass over memory: to + (from + (behind + ...)). The calls run on the device of the sum; what they do not reach
// in place is copied through memory of the host. Borrows the nodes.
class ShardSum {
 public:
  explicit ShardSum(ShardNodes nodes);

  // Enqueues the work, in the stream of `to`. share: the samples of `from` among those of both, the weight of its
  // buffers in a mean. dense: whether dense gradients are added, too.
  void start(double share, bool dense);

 private:
  // What lies out of reach of the device of the sum, and a copy of it there.
  struct Copied {
    ShardValues* node;
    const void* from;
    DeviceMemory here;
    uint64_t bytes;       // of a row, if it is part of a row-sparse gradient
    const int64_t* rows;  // their number in this step; null: it is no such part
  };
  void reserve_rows();
  void prepare();
  void add_dense();
  void add_rows(size_t number);
  void merge_buffers();
  [[nodiscard]] std::vector<std::shared_ptr<const MemoryId>> memory_ids() const;
  void* here(ShardValues& node, const void* from, uint64_t bytes, int64_t capacity = 1, const int64_t* rows = nullptr);
  void put_control(double share);
  static constexpr uint64_t kShareAt = 16, kSymbolsAt = 64;  // bytes into control_, which begins with tn_random
  static_assert(sizeof(tn_random) <= kShareAt);
  [[nodiscard]] int64_t& rows_of(size_t gradient) { return symbols_[TN_SYMBOL_FIRST_RAGGED + gradient]; }

  ShardNodes nodes_;
  ShardValues &to_, &from_;
  DeviceMachine& machine_;                            // of the sum
  std::vector<std::shared_ptr<const MemoryId>> ids_;  // of the nodes for which the calls are prepared
  std::vector<int64_t> symbols_;  // the first ragged ones: rows of the row-sparse gradients of `from`
  std::vector<Copied> copied_;
  DeviceMemory control_, workspace_;  // control: tn_random, the share in the compute type, sizes by symbol
  std::vector<std::unique_ptr<OperandCall>> calls_;
  size_t dense_calls_ = 0;  // the first ones: of dense gradients
};

// The sums of nodes, each prepared once.
class ShardSums {
 public:
  // As ShardSum::start.
  void start(const ShardNodes& nodes, double share, bool dense) {
    std::unique_ptr<ShardSum>& sum = by_nodes_[nodes];
    if (sum == nullptr) sum = std::make_unique<ShardSum>(nodes);
    sum->start(share, dense);
  }

 private:
  std::map<ShardNodes, std::unique_ptr<ShardSum>> by_nodes_;
};

}  // namespace tenon::host

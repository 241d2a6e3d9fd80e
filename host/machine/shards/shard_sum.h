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

// Adds the gradients of a node of the tree of shards to those of another one, and merges the next values of their
// buffers by the rules that their layers state (TN_MERGE_*). The calls run on the device of the sum; what they do not
// reach in place is copied through memory of the host. Borrows both.
class ShardSum {
 public:
  ShardSum(ShardValues& to, ShardValues& from) : to_(to), machine_(to.machine()), from_(from) {}

  // Enqueues the work, in the stream of `to`. share: the samples of `from` among those of both, the weight of its
  // buffers in a mean. dense: whether dense gradients are added, too.
  void start(double share, bool dense);

 private:
  // What lies out of reach of the device of the sum, and a copy of it there.
  struct Copied {
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
  void* here(const void* from, uint64_t bytes, int64_t capacity = 1, const int64_t* rows = nullptr);
  void put_control(double share);
  static constexpr uint64_t kShareAt = 16, kSymbolsAt = 64;  // bytes into control_, which begins with tn_random
  static_assert(sizeof(tn_random) <= kShareAt);
  [[nodiscard]] int64_t& rows_of(size_t gradient) { return symbols_[TN_SYMBOL_FIRST_RAGGED + gradient]; }

  ShardValues& to_;
  DeviceMachine& machine_;  // of the sum
  ShardValues& from_;
  std::shared_ptr<const MemoryId> to_id_, from_id_;  // for which the calls are prepared
  std::vector<int64_t> symbols_;  // the first ragged ones: rows of the row-sparse gradients of `from`
  std::vector<Copied> copied_;
  DeviceMemory control_, workspace_;  // control: tn_random, the share in the compute type, sizes by symbol
  std::vector<std::unique_ptr<OperandCall>> calls_;
  size_t dense_calls_ = 0;  // the first ones: of dense gradients
};

// The sums of pairs of nodes, each prepared once.
class ShardSums {
 public:
  // As ShardSum::start.
  void start(ShardValues& to, ShardValues& from, double share, bool dense) {
    std::unique_ptr<ShardSum>& sum = by_pair_[{&to, &from}];
    if (sum == nullptr) sum = std::make_unique<ShardSum>(to, from);
    sum->start(share, dense);
  }

 private:
  std::map<std::pair<const ShardValues*, const ShardValues*>, std::unique_ptr<ShardSum>> by_pair_;
};

}  // namespace tenon::host

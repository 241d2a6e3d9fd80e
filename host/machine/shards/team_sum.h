// The sum over the shards of all processes of a team. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "host/comm/team.h"
#include "host/machine/device_machine.h"
#include "host/machine/shards/dense_sum.h"
#include "host/machine/shards/lane.h"
#include "host/machine/shards/row_terms.h"
#include "host/machine/shards/shard_tree.h"
#include "host/machine/shards/shards.h"

namespace tenon::host {

using namespace core;

// Adds up what the shards of all processes have, in the order of the tree, so that each process has the sums in its
// first machine: dense gradients, row-sparse ones, next values of buffers. Of the latter two each process sends its
// nodes of the tree to all, and all add up. The host adds, in memory of its own where it cannot address that of the
// device.
class TeamSum : base::NotCopied {
 public:
  // Borrows the machine, the first one of the process. shards: of all processes.
  TeamSum(Team& team, DeviceMachine& machine, size_t shards);

  // Whether dense gradients can travel while a backward computes others.
  [[nodiscard]] bool overlaps() const { return machine_.access().is_direct(); }
  // Then, before the last backward of a minibatch. own: the sums of this process, with those that the backward leaves;
  // it changes them.
  void begin(const ShardTree& tree, const std::vector<SummedNode>& own);
  // Says that these bytes of the dense gradients of all these sums will not change any more; once for each byte.
  void add_final(uint64_t offset, uint64_t bytes) { dense_.add_final(offset, bytes); }
  // After all processes have run backward for a minibatch, and after each has added up its own nodes, which it changes,
  // but for the dense gradients after begin(). own: by their first shard. Collective.
  void run(const ShardTree& tree, const std::map<size_t, ShardValues*>& own);
  // After a failure: returns when nothing travels any more.
  void end() noexcept;

 private:
  // What a node has, but dense gradients.
  struct Terms {
    std::vector<std::byte> buffers;  // next values of all that are merged, one behind the other
    std::vector<int64_t> counts;     // rows, by row-sparse gradient, of row_sparse_
    std::vector<RowTerms> rows;      // likewise
  };
  [[nodiscard]] bool is_own(const TeamNode& node) const { return node.process == team_.rank(); }
  [[nodiscard]] std::byte* dense_of(ShardValues& values);
  void list_nodes(const ShardTree& tree);
  void read_own(const std::map<size_t, ShardValues*>& own);
  [[nodiscard]] Team::Transfers begin_terms();
  void exchange_rows();
  void join(const ShardTree& tree);
  void join_buffers(Terms& to, const Terms& from, double share) const;
  void write_sums();

  Team& team_;
  DeviceMachine& machine_;
  size_t shards_;
  uint64_t buffer_bytes_ = 0;
  std::vector<size_t> row_sparse_;  // numbers in CompiledModel::sparse_gradients, those of tables left out (TableSum)
  DenseSum dense_;
  bool has_begun_ = false;         // the sum of dense gradients
  size_t with_samples_ = 0;        // the shards of which nodes_ are the nodes
  std::vector<TeamNode> nodes_;    // of all processes
  std::map<size_t, Terms> terms_;  // by the first shard of the node; its room stays for the next step
  std::map<ShardValues*, std::vector<std::byte>> staged_;  // dense gradients that the host cannot address
};

}  // namespace tenon::host

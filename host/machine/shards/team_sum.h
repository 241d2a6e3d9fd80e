// The sum over the shards of all processes of a team. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "host/comm/team.h"
#include "host/machine/device_machine.h"
#include "host/machine/shards/shard_tree.h"
#include "host/machine/shards/shards.h"

namespace tenon::host {

using namespace core;

// Adds up what the shards of all processes have, in the order of the tree, so that each process has the sums in its
// first machine: dense gradients, row-sparse ones, next values of buffers. Of the dense ones each process adds up a
// part and gives it to the others (a reduce-scatter and a gather); of the others each adds up all. A process sends the
// nodes of the tree that it has alone, so what is added is a function of the shards, and not of the processes. The host
// adds, in memory of its own where it cannot address that of the device.
class TeamSum : base::NotCopied {
 public:
  // Borrows the machine, the first one of the process. shards: of all processes.
  TeamSum(Team& team, DeviceMachine& machine, size_t shards);
  // After all processes have run backward for a minibatch, and after each has added up its own nodes, which it changes.
  // own: by their first shard. Collective.
  void run(const ShardTree& tree, const std::map<size_t, ShardValues*>& own);

 private:
  struct Node : ShardSpan {
    int64_t process;
  };
  // Rows of one row-sparse gradient.
  struct Rows {
    std::vector<int64_t> ids;
    std::vector<std::byte> values;
  };
  // What a node has. Dense: the part that this process adds up; in place if the node is its own.
  struct Terms {
    std::byte* dense = nullptr;
    std::vector<std::byte> received;  // behind `dense`, of another process
    std::vector<std::byte> buffers;   // next values of all that are merged, one behind the other
    std::vector<int64_t> counts;      // rows, by row-sparse gradient
    std::vector<Rows> rows;           // by row-sparse gradient
  };
  [[nodiscard]] bool is_own(const Node& node) const { return node.process == team_.rank(); }
  [[nodiscard]] ShardRange part(int64_t process) const;
  [[nodiscard]] std::byte* dense_of(ShardValues& values);
  void list_nodes(const ShardTree& tree);
  void read_own(const std::map<size_t, ShardValues*>& own);
  void exchange_terms();
  void exchange_rows();
  void exchange_sums();
  void join(const ShardTree& tree);
  void join_buffers(Terms& to, const Terms& from, double share) const;
  void write_sums();

  Team& team_;
  DeviceMachine& machine_;
  size_t shards_;
  std::vector<MergedBuffer> buffers_;
  uint64_t buffer_bytes_ = 0;
  size_t with_samples_ = 0;        // the shards of which nodes_ are the nodes
  std::vector<Node> nodes_;        // of all processes
  std::map<size_t, Terms> terms_;  // by the first shard of the node; its room stays for the next step
  std::map<ShardValues*, std::vector<std::byte>> staged_;  // dense gradients that the host cannot address
};

}  // namespace tenon::host

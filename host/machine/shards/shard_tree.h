// The order in which the shards of a minibatch are added up. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "host/machine/shards/shards.h"

namespace tenon::host {

// Adds the sum of the shards [from, end) to that of the shards [to, from).
struct ShardJoin {
  size_t to, from, end;
};
// Shards whose sum is a node of the tree.
struct ShardSpan {
  size_t first, end;
  bool operator==(const ShardSpan&) const = default;
};

// One that a process has alone.
struct TeamNode : ShardSpan {
  int64_t process;
  bool operator==(const TeamNode&) const = default;
};

// A binary tree over the shards that have samples, the first `count` ones: shard 1 is added to 0, 3 to 2, ...; then 2
// to 0, 6 to 4, ... The sum of each element is an expression that depends on `count` alone, whoever computes its parts.
class ShardTree {
 public:
  // Of a minibatch of so many samples, divided among `shards`.
  ShardTree(int64_t samples, size_t shards);

  [[nodiscard]] size_t count() const { return count_; }
  [[nodiscard]] int64_t samples() const { return samples_; }
  // Those of one level are independent of each other.
  [[nodiscard]] const std::vector<std::vector<ShardJoin>>& levels() const { return levels_; }
  // Returns the join that adds the sum of `from` to that of `to`; null: the tree has none.
  [[nodiscard]] const ShardJoin* join_of(const ShardSpan& to, const ShardSpan& from) const;
  // Returns the samples of the shards that a join adds, among those of the sum.
  [[nodiscard]] double share(const ShardJoin& join) const;
  // Returns the largest nodes that have no other shards than [first, end), in their order.
  [[nodiscard]] std::vector<ShardSpan> nodes_within(size_t first, size_t end) const;

 private:
  int64_t samples_;
  size_t shards_, count_;
  std::vector<std::vector<ShardJoin>> levels_;
};

// Returns the shards that a process computes. trainers: processes that compute shards, the first ones of a team.
[[nodiscard]] ShardRange shards_of_process(size_t shards, int64_t trainers, int64_t process);
// Returns the nodes that each process has alone, of the shards that it computes, in the order of the shards.
[[nodiscard]] std::vector<TeamNode> nodes_of_team(const ShardTree& tree, size_t shards, int64_t trainers);

}  // namespace tenon::host

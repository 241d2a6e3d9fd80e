// SPDX-License-Identifier: Apache-2.0
#include "host/machine/shards/shard_tree.h"

#include <algorithm>

namespace tenon::host {

ShardTree::ShardTree(int64_t samples, size_t shards)
    : samples_(samples), shards_(shards), count_(static_cast<size_t>(std::min(samples, static_cast<int64_t>(shards)))) {
  for (size_t step = 1; step < count_; step *= 2) {
    std::vector<ShardJoin>& level = levels_.emplace_back();
    for (size_t from = step; from < count_; from += 2 * step)
      level.push_back({from - step, from, std::min(from + step, count_)});
  }
}

const ShardJoin* ShardTree::join_of(const ShardSpan& to, const ShardSpan& from) const {
  if (to.end != from.first) return nullptr;
  for (size_t level = 0, step = 1; level < levels_.size(); ++level, step *= 2) {
    if (to.end - to.first != step || to.first % (2 * step) != 0) continue;
    const ShardJoin& join = levels_[level][to.first / (2 * step)];
    return join.end == from.end ? &join : nullptr;
  }
  return nullptr;
}

double ShardTree::share(const ShardJoin& join) const {
  const auto before = [&](size_t shard) { return shard_range(samples_, shards_, shard).first; };
  return static_cast<double>(before(join.end) - before(join.from)) /
         static_cast<double>(before(join.end) - before(join.to));
}

std::vector<ShardSpan> ShardTree::nodes_within(size_t first, size_t end) const {
  std::vector<ShardSpan> nodes;
  for (size_t shard = first; shard < std::min(end, count_); ++shard) nodes.push_back({shard, shard + 1});
  for (const std::vector<ShardJoin>& level : levels_)
    for (const ShardJoin& join : level) {
      if (join.to < first || join.end > end) continue;
      const auto to = std::find(nodes.begin(), nodes.end(), ShardSpan{join.to, join.from});
      to->end = join.end;
      nodes.erase(to + 1);
    }
  return nodes;
}

ShardRange shards_of_process(size_t shards, int64_t trainers, int64_t process) {
  const auto count = static_cast<int64_t>(shards);
  if (process >= trainers) return {count, 0};
  return shard_range(count, static_cast<size_t>(trainers), static_cast<size_t>(process));
}

std::vector<TeamNode> nodes_of_team(const ShardTree& tree, size_t shards, int64_t trainers) {
  std::vector<TeamNode> nodes;
  for (int64_t process = 0; process < trainers; ++process) {
    const ShardRange own = shards_of_process(shards, trainers, process);
    const auto first = static_cast<size_t>(own.first);
    for (const ShardSpan& span : tree.nodes_within(first, first + static_cast<size_t>(own.count)))
      nodes.push_back({span, process});
  }
  return nodes;
}

}  // namespace tenon::host

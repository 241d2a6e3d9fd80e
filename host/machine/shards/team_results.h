// What the shards of all processes have measured. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "host/comm/team.h"
#include "host/machine/shards/lane.h"

namespace tenon::host {

using namespace core;

// Gives each process the costs and the sums of metrics of all shards, while they compute other things.
class TeamResults : base::NotCopied {
 public:
  // Borrows all. others: the shards of other processes, in their order.
  TeamResults(Team& team, const std::vector<std::unique_ptr<Lane>>& lanes,
              const std::vector<std::unique_ptr<ShardRecord>>& others);

  // After a forward of a minibatch of so many samples. Collective.
  void begin(int64_t samples);
  // Returns when the others have what their shards have measured.
  void finish();
  // After a failure: returns when nothing travels any more.
  void end() noexcept { transfers_ = {}; }

 private:
  // Calls work(record, shard, numbers of the shard) for each shard of another process.
  template <typename Work>
  void each_other(const Work& work);

  Team& team_;
  const CompiledModel& model_;
  std::vector<const Shard*> own_;
  const std::vector<std::unique_ptr<ShardRecord>>& others_;
  size_t shards_, numbers_;  // numbers: of a shard
  int64_t samples_ = 0;
  std::vector<double> all_;  // by process, then by shard
  Team::Transfers transfers_;
};

}  // namespace tenon::host

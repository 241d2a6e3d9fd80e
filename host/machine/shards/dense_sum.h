// The sum of dense gradients over the processes of a team. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/services.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/error.h"
#include "host/comm/team.h"
#include "host/machine/shards/shard_tree.h"

namespace tenon::host {

using namespace core;

// to[i] += from[i], of numbers of a compute type. parallel: null: on this thread.
void add_numbers(tn_dtype compute, const tn_parallel* parallel, std::byte* to, const std::byte* from, uint64_t bytes);

// Bytes of the parts in which gradients are added up.
struct ChunkSizes {
  uint64_t least = uint64_t{8} << 10U;   // smaller values share a chunk with their neighbours
  uint64_t most = uint64_t{256} << 10U;  // larger values are cut
  uint64_t shared = uint64_t{1} << 20U;  // that each process receives if all add up everything
};

// Adds up dense gradients in chunks, each of which travels as soon as it is final, while others are computed. A chunk
// goes to its owner, which adds it up and gives the sum to all; where there are few bytes each process sends all to
// all, and all add up, which saves a message's time. A process sends the nodes of the tree that it has alone, so that
// what is added is a function of the shards; in which order chunks are final, or arrive, never matters.
class DenseSum : base::NotCopied {
 public:
  // ends: of the values that are summed, one behind the other, in bytes; multiples of a cache line.
  DenseSum(Team& team, tn_dtype compute, const tn_parallel* parallel, const std::vector<uint64_t>& ends,
           const ChunkSizes& sizes = {});

  // The sum over some shards of this process, of all values.
  struct Term : ShardSpan {
    std::byte* values;
  };
  // Begins a minibatch. nodes: of all processes, by nodes_of_team. terms: of the shards of this process that have
  // samples, in their order. sum: gets the sum over all; may be the values of a term, which are overwritten anyhow.
  // The memory is borrowed until finish() or end().
  void begin(const ShardTree& tree, const std::vector<TeamNode>& nodes, std::vector<Term> terms, std::byte* sum);
  // Says that these bytes of all terms will not change any more; once for each byte. Does not wait.
  void add_final(uint64_t offset, uint64_t bytes);
  // Says so of the rest. Returns when the sum is there.
  void finish();
  // After a failure: returns when nothing travels any more.
  void end() noexcept;

 private:
  static constexpr int64_t kAll = -1;
  enum class Stage {
    kComputed,  // not final yet
    kTerms,     // terms travel
    kSums,      // the sum travels, from its owner
    kDone
  };
  struct Chunk {
    uint64_t offset, bytes;
    int64_t owner = kAll;
    Stage stage = Stage::kDone;
    uint64_t missing = 0;         // bytes that are not final yet
    std::vector<std::byte> room;  // terms of other processes
    Team::Transfers out, in;      // of the stage
  };

  [[nodiscard]] bool is_added_here(const Chunk& chunk) const {
    return chunk.owner == kAll || chunk.owner == team_.rank();
  }
  [[nodiscard]] uint32_t channel(const Chunk& chunk) const {
    return 1 + static_cast<uint32_t>(&chunk - chunks_.data());
  }
  // Where a node of the tree lies.
  struct Place {
    size_t first;  // shard
    std::byte* values;
  };

  void cut(const std::vector<uint64_t>& ends);
  void assign_owners();
  void receive_terms(Chunk& chunk);
  [[nodiscard]] bool advance_all();
  [[nodiscard]] bool advance(Chunk& chunk);
  void send_terms(Chunk& chunk);
  void add_up(Chunk& chunk);
  void share_sum(Chunk& chunk);
  void join(std::vector<Place>& nodes, ShardSpan shards, uint64_t bytes, const std::byte* target) const;

  Team& team_;
  tn_dtype compute_;
  const tn_parallel* parallel_;
  ChunkSizes sizes_;
  std::vector<Chunk> chunks_;
  ShardTree tree_{0, 0};
  std::vector<TeamNode> nodes_;
  std::vector<Term> terms_;
  std::byte* sum_ = nullptr;
};

}  // namespace tenon::host

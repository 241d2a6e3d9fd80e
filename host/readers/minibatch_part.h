// The part of each minibatch that a process reads. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/shard_range.h"

namespace tenon::host {

using namespace core;

// The samples of some of the shards into which a minibatch is divided; by default all of it.
struct MinibatchPart {
  size_t shards = 1;            // of the minibatch
  size_t first = 0, count = 1;  // the shards of the part, at least one
  bool whole_first = false;     // all samples of the first minibatch of a pass

  bool operator==(const MinibatchPart&) const = default;
  // Returns which of the `samples` of a minibatch belong to the part. position: of the first one in the pass.
  [[nodiscard]] ShardRange range(int64_t samples, int64_t position) const {
    if (whole_first && position == 0) return {0, samples};
    const int64_t begin = shard_range(samples, shards, first).first;
    const ShardRange last = shard_range(samples, shards, first + count - 1);
    return {begin, last.first + last.count - begin};
  }
};

// The minibatch of which a part was read.
struct PartRead {
  int64_t samples = 0;  // of the minibatch; 0: the end of a pass
  int64_t first = 0;    // the number in it of the first sample of the part
};

}  // namespace tenon::host

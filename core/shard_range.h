// How the samples of a minibatch are divided among shards. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tenon::core {

// A part of the samples of a minibatch.
struct ShardRange {
  int64_t first = 0, count = 0;
  bool operator==(const ShardRange&) const = default;
};

// Cuts `samples` into `shards` parts in their order, which differ by at most one sample; the larger ones come first.
// Those beyond the samples are empty. It depends on these two numbers alone.
[[nodiscard]] inline ShardRange shard_range(int64_t samples, size_t shards, size_t number) {
  const auto parts = static_cast<int64_t>(shards), at = static_cast<int64_t>(number);
  const int64_t least = samples / parts, larger = samples % parts;
  return {at * least + std::min(at, larger), least + (at < larger ? 1 : 0)};
}

}  // namespace tenon::core

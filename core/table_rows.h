// Which process owns which rows of a table that several share. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/shard_range.h"

namespace tenon::core {

// Row r of a table lies in block r mod kTableBlocks. Blocks, and not rows, are divided among the owners, so that any
// number of owners can take over what others have written; neighbours lie in different blocks, since rows that are read
// often tend to be neighbours.
constexpr int64_t kTableBlocks = 256;

// Adjacent blocks of one owner. It has its rows in ascending order: those of an owner of all blocks lie as in a dense
// array.
struct TableBlocks {
  int64_t first = 0, count = kTableBlocks;

  [[nodiscard]] bool contains(int64_t row) const {
    const int64_t block = row % kTableBlocks;
    return block >= first && block < first + count;
  }
  // Returns how many of the first `height` rows are in the blocks.
  [[nodiscard]] int64_t rows(int64_t height) const {
    return height / kTableBlocks * count + std::clamp<int64_t>(height % kTableBlocks - first, 0, count);
  }
  // Returns the place of a row among those of the owner, and the row of a place.
  [[nodiscard]] int64_t place(int64_t row) const { return row / kTableBlocks * count + row % kTableBlocks - first; }
  [[nodiscard]] int64_t row(int64_t place) const { return place / count * kTableBlocks + first + place % count; }
  bool operator==(const TableBlocks&) const = default;
};

// Returns the blocks of owner number `owner` of `owners`, of which there are at most kTableBlocks.
[[nodiscard]] inline TableBlocks blocks_of(int64_t owners, int64_t owner) {
  const ShardRange blocks = shard_range(kTableBlocks, static_cast<size_t>(owners), static_cast<size_t>(owner));
  return {blocks.first, blocks.count};
}

// Returns which of `owners` has a row.
[[nodiscard]] inline int64_t owner_of(int64_t owners, int64_t row) {
  const int64_t least = kTableBlocks / owners, larger = kTableBlocks % owners, block = row % kTableBlocks;
  const int64_t in_larger = larger * (least + 1);  // blocks of the first owners, which have one more
  return block < in_larger ? block / (least + 1) : larger + (block - in_larger) / least;
}

}  // namespace tenon::core

// Cuts consecutive segments into tasks. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace tenon::cpu {

// Segments [first, last).
struct SegmentRange {
  int64_t first, last;
};

// Returns the segments of task `index` of `tasks`. Segment s has the rows [offsets[s], offsets[s + 1]); offsets is
// [segments + 1]. Every task gets about the same number of rows, where a segment counts as one more row. The cuts
// depend on the offsets alone.
inline SegmentRange segments_of_task(const int64_t* offsets, int64_t segments, int64_t tasks, int64_t index) {
  const int64_t whole = offsets[segments] + segments;
  const auto cut = [&](int64_t task) {
    const int64_t share = whole / tasks * task + std::min(whole % tasks, task);
    int64_t low = 0, high = segments;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (offsets[middle] + middle < share)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  };
  return {index == 0 ? 0 : cut(index), index + 1 == tasks ? segments : cut(index + 1)};
}

}  // namespace tenon::cpu

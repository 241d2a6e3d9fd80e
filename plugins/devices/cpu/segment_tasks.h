// How segments are shared out. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace tenon::cpu {

// Segments end to end: segment s has the rows from offsets[s] to offsets[s + 1].
struct SegmentRange {
  int64_t first, last;
};

// The segments of task `index` of `tasks`: cut between segments so that all have about equally many rows, where a
// segment counts as one more. Follows from the offsets alone.
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

// Cuts of segments into tasks: each task gets its share of the rows. SPDX-License-Identifier: Apache-2.0
#include "segment_tasks.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace tenon_tests {
namespace {

using tenon::cpu::SegmentRange;
using tenon::cpu::segments_of_task;

// Each segment is in one task, in order; a task exceeds its share of rows and segments by at most one segment.
void check(const std::vector<int64_t>& lengths) {
  std::vector<int64_t> offsets = {0};
  for (const int64_t length : lengths) offsets.push_back(offsets.back() + length);
  const auto segments = static_cast<int64_t>(lengths.size());
  int64_t longest = 0;
  for (const int64_t length : lengths) longest = std::max(longest, length + 1);
  for (int64_t tasks = 1; tasks <= 9; ++tasks) {
    int64_t next = 0;
    for (int64_t task = 0; task < tasks; ++task) {
      const SegmentRange range = segments_of_task(offsets.data(), segments, tasks, task);
      EXPECT_EQ(range.first, next);
      ASSERT_LE(range.first, range.last);
      next = range.last;
      const int64_t work = offsets[static_cast<size_t>(range.last)] - offsets[static_cast<size_t>(range.first)] +
                           range.last - range.first;
      EXPECT_LE(work, (offsets.back() + segments) / tasks + 1 + longest) << task << " of " << tasks;
    }
    EXPECT_EQ(next, segments);
  }
}

TEST(SegmentTasks, EachGetsItsShareOfRowsAndSegments) {
  check({});
  check({7});
  check(std::vector<int64_t>(1000, 0));
  check(std::vector<int64_t>(1000, 3));
  std::vector<int64_t> first_long(100, 0);
  first_long[0] = 50;
  check(first_long);
  std::minstd_rand random(1);
  for (int round = 0; round < 20; ++round) {
    std::vector<int64_t> lengths(random() % 300);
    for (int64_t& length : lengths) length = random() % 4 == 0 ? static_cast<int64_t>(random() % 40) : 0;
    check(lengths);
  }
}

}  // namespace
}  // namespace tenon_tests

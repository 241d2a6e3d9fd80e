// Lets calls of the C library fail: memory that is asked for, and files. It serves the whole process: the host, every
// plugin and every library below them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tenon_tests {

enum class Calls {
  kMemory,  // malloc and its kin; with a sanitizer, which needs these for itself, operator new
  kFiles    // open, fstat, read, pread, write, fsync, close, rename
};

// While one lives, calls of one kind are counted, on all threads, and fail from number `first` on: that one alone, or
// all. One at a time.
class FailingCalls {
 public:
  static constexpr int64_t kNone = INT64_MAX;
  FailingCalls(Calls kind, int64_t first, bool for_good);
  ~FailingCalls();
  FailingCalls(const FailingCalls&) = delete;
  FailingCalls& operator=(const FailingCalls&) = delete;

  [[nodiscard]] static int64_t calls();  // so far
};

// Blocks of memory that the process holds.
[[nodiscard]] int64_t blocks_held();

}  // namespace tenon_tests

// Makes calls of the C library fail: allocations and operations on files. Affects the whole process: the host, every
// plugin and every library below them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tenon_tests {

enum class Calls {
  kMemory,  // malloc and related functions; with a sanitizer, which replaces these itself, operator new
  kFiles    // open, fstat, read, pread, write, fsync, close, rename
};

// Counts the calls of one kind on all threads while it exists. Call number `first` fails; with `for_good` all later
// calls fail too. At most one object exists at a time.
class FailingCalls {
 public:
  static constexpr int64_t kNone = INT64_MAX;
  FailingCalls(Calls kind, int64_t first, bool for_good);
  ~FailingCalls();
  FailingCalls(const FailingCalls&) = delete;
  FailingCalls& operator=(const FailingCalls&) = delete;

  [[nodiscard]] static int64_t calls();  // so far
};

// The number of blocks of memory that the process holds.
[[nodiscard]] int64_t blocks_held();

}  // namespace tenon_tests

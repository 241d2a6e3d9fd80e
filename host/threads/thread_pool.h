// The host's compute threads. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/services.h>

#include <cstdint>
#include <memory>

#include "base/not_copied.h"

namespace tenon::host {

// A pool of `threads` workers, the calling thread among them as worker 0. Workers spin for a moment after each
// region, then park. Tasks are handed out a few at a time (dynamic scheduling), so a busy core delays only the tasks
// that it holds. for_each may be called from any thread; from inside a task, and while a region of another thread runs,
// it runs inline.
// The floating-point mode (rounding, denormals) is set to the default around every region and restored after it.
class ThreadPool : base::NotCopied {
 public:
  explicit ThreadPool(int32_t threads);  // 0: one per core that this process may use
  ~ThreadPool();

  [[nodiscard]] int32_t threads() const;
  // The number of threads that have run at least one task so far.
  [[nodiscard]] uint64_t workers_computed() const;
  // For execution contexts; valid as long as the pool.
  [[nodiscard]] const tn_parallel* parallel() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Runs every task on the calling thread, in order; for any number of threads at once.
[[nodiscard]] const tn_parallel& calling_thread();

}  // namespace tenon::host

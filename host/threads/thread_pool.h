// The host's compute threads. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/services.h>

#include <cstdint>
#include <memory>

namespace tenon {

// A pool of `threads` workers, the calling thread among them as worker 0. Workers spin for a moment after each
// region, then park. Tasks are handed out a few at a time (dynamic), so a busy core delays only those it holds.
// for_each may be called from one thread at a time, which the host ensures; from inside a task it runs inline.
// The floating-point mode (rounding, denormals) is set to the default around every region and restored after it.
class ThreadPool {
 public:
  explicit ThreadPool(int32_t threads);  // 0: the cores this process may use
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int32_t threads() const;
  // Threads that have run at least one task so far.
  [[nodiscard]] uint64_t workers_computed() const;
  // For execution contexts; valid as long as the pool.
  [[nodiscard]] const tn_parallel* parallel() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tenon

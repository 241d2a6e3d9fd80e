// The host's compute threads. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/services.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/not_copied.h"

namespace tenon::host {

// Starts a thread; throws std::system_error.
using ThreadStart = std::function<std::thread(std::function<void()> body)>;
[[nodiscard]] std::thread start_thread(std::function<void()> body);

// A pool of `threads` workers, or of as many as the system starts, the calling thread among them as worker 0. Workers
// spin for a moment after each region, then park. Tasks are handed out a few at a time (dynamic scheduling), so a busy
// core delays only the tasks that it holds. for_each may be called from any thread; from inside a task, and while a
// region of another thread runs, it runs inline. The floating-point mode (rounding, denormals) is set to the default
// around every region and restored after it.
class ThreadPool : base::NotCopied {
 public:
  explicit ThreadPool(int32_t threads, const ThreadStart& start = start_thread);  // 0: as many as usable_cores()
  ~ThreadPool();

  [[nodiscard]] int32_t threads() const;
  // Why there are so many: "stated", what usable_cores() says, or the shortage.
  [[nodiscard]] const std::string& reason() const;
  // Why there are fewer than requested, "" if there are not.
  [[nodiscard]] const std::string& shortage() const;
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

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace tenon::host {

// Hands out the tasks of several phases in order, on request. Workers may come late or not at all: no worker waits for
// one that holds no task. A task begins only after all tasks of the earlier phases are done.
class Phases {
 public:
  // Tasks of one phase that a worker has taken. Indices count the tasks of all phases.
  struct TaskRange {
    int32_t phase = 0;
    int64_t first = 0;           // the phase's first task
    int64_t begin = 0, end = 0;  // the range of tasks taken
    int64_t last = 0;            // one past the phase's last task
  };

  // sizes: the number of tasks of each phase, borrowed until the last task is done. chunks: the parts that a phase is
  // cut into.
  void begin(int32_t count, const int64_t* sizes, int64_t chunks) {
    count_ = count;
    sizes_ = sizes;
    chunks_ = chunks;
    next_.store(0, std::memory_order_relaxed);
    done_.store(0, std::memory_order_relaxed);
  }
  // The argument of a worker's first call of take().
  [[nodiscard]] TaskRange none() const { return {0, 0, 0, 0, size(0)}; }
  // Takes up to one chunk of tasks from the phase of `taken` or a later one. Returns false if none is left.
  bool take(TaskRange& taken) {
    int64_t begin = next_.load(std::memory_order_relaxed);
    for (;;) {
      while (begin >= taken.last) {
        if (taken.phase + 1 == count_) return false;
        ++taken.phase;
        taken.first = taken.last;
        taken.last += size(taken.phase);
      }
      const int64_t end = std::min(taken.last, begin + chunk(taken.last - taken.first));
      if (!next_.compare_exchange_weak(begin, end, std::memory_order_relaxed)) continue;
      taken.begin = begin;
      taken.end = end;
      return true;
    }
  }
  [[nodiscard]] bool may_begin(const TaskRange& taken) const {
    return done_.load(std::memory_order_acquire) >= taken.first;
  }
  void sleep_until_may_begin(const TaskRange& taken) const {
    for (int64_t done = 0; (done = done_.load(std::memory_order_acquire)) < taken.first;)
      done_.wait(done, std::memory_order_acquire);
  }
  // True if these are the last unfinished tasks of their phase, and a later phase may wait for them.
  [[nodiscard]] bool are_last(const TaskRange& taken) const {
    return taken.phase + 1 < count_ && done_.load(std::memory_order_relaxed) + taken.end - taken.begin == taken.last;
  }
  void done(const TaskRange& taken) {
    if (taken.phase + 1 == count_) return;  // the gate detects the end of the last phase
    const int64_t tasks = taken.end - taken.begin;
    if (done_.fetch_add(tasks, std::memory_order_acq_rel) + tasks == taken.last) done_.notify_all();
  }

 private:
  [[nodiscard]] int64_t size(int32_t phase) const { return std::max<int64_t>(sizes_[phase], 0); }
  static constexpr int64_t kLargestChunk = 64;
  [[nodiscard]] int64_t chunk(int64_t tasks) const { return std::clamp<int64_t>(tasks / chunks_, 1, kLargestChunk); }

  int32_t count_ = 0;
  const int64_t* sizes_ = nullptr;
  int64_t chunks_ = 1;  // parts that a phase is cut into
  std::atomic<int64_t> next_{0}, done_{0};
};

}  // namespace tenon::host

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace tenon {

// The tasks of several phases, handed out in their order to whoever asks: a worker may come late or not at all, and
// none waits for another one that holds no task. No task begins before all of the phases before its own are done.
class Phases {
 public:
  // Tasks of one phase that a worker has taken.
  struct Taken {
    int32_t phase = 0;
    int64_t first = 0;           // number of the phase's first task among those of all phases
    int64_t begin = 0, end = 0;  // of the tasks taken, likewise
    int64_t last = 0;            // one behind the phase's last task
  };

  // The sizes are borrowed until the last task is done.
  void begin(int32_t count, const int64_t* sizes, int64_t chunks) {
    count_ = count;
    sizes_ = sizes;
    chunks_ = chunks;
    next_.store(0, std::memory_order_relaxed);
    done_.store(0, std::memory_order_relaxed);
  }
  [[nodiscard]] Taken none() const { return {0, 0, 0, 0, size(0)}; }
  // Takes some tasks of one phase, the one that `taken` is in or a later one. False when none is left.
  bool take(Taken& taken) {
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
  [[nodiscard]] bool may_begin(const Taken& taken) const {
    return done_.load(std::memory_order_acquire) >= taken.first;
  }
  void sleep_until_may_begin(const Taken& taken) const {
    for (int64_t done = 0; (done = done_.load(std::memory_order_acquire)) < taken.first;)
      done_.wait(done, std::memory_order_acquire);
  }
  // Whether all other tasks up to the end of their phase are done, and somebody may wait for these.
  [[nodiscard]] bool are_last(const Taken& taken) const {
    return taken.phase + 1 < count_ && done_.load(std::memory_order_relaxed) + taken.end - taken.begin == taken.last;
  }
  void done(const Taken& taken) {
    if (taken.phase + 1 == count_) return;  // the region's end is the gate's affair
    const int64_t tasks = taken.end - taken.begin;
    if (done_.fetch_add(tasks, std::memory_order_acq_rel) + tasks == taken.last) done_.notify_all();
  }

 private:
  [[nodiscard]] int64_t size(int32_t phase) const { return std::max<int64_t>(sizes_[phase], 0); }
  static constexpr int64_t kLargestChunk = 64;
  [[nodiscard]] int64_t chunk(int64_t tasks) const { return std::clamp<int64_t>(tasks / chunks_, 1, kLargestChunk); }

  int32_t count_ = 0;
  const int64_t* sizes_ = nullptr;
  int64_t chunks_ = 1;  // that a phase is cut into
  std::atomic<int64_t> next_{0}, done_{0};
};

}  // namespace tenon

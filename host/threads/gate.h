// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace tenon::host {

// Admits workers to a region. Bit 31 of the state is set while a region runs; the other bits count the workers inside.
class Gate {
 public:
  void open() { state_.fetch_or(kOpen, std::memory_order_release); }
  // Returns false, and leaves again, if the gate is shut.
  bool enter() {
    if ((state_.fetch_add(1, std::memory_order_acquire) & kOpen) != 0) return true;
    leave();
    return false;
  }
  void leave() {
    state_.fetch_sub(1, std::memory_order_release);
    state_.notify_one();
  }
  // True if the gate is shut and one worker is inside: the region ends when that worker leaves. That worker then sees
  // the writes of all that left before it.
  [[nodiscard]] bool is_last() const { return state_.load(std::memory_order_acquire) == 1; }
  void shut() { state_.fetch_and(~kOpen, std::memory_order_relaxed); }
  // Call after shut().
  [[nodiscard]] bool is_empty() const { return state_.load(std::memory_order_acquire) == 0; }
  void sleep_until_empty() const {
    for (uint32_t inside = 0; (inside = state_.load(std::memory_order_acquire)) != 0;)
      state_.wait(inside, std::memory_order_acquire);
  }

 private:
  static constexpr uint32_t kOpen = 1u << 31;
  std::atomic<uint32_t> state_{0};
};

}  // namespace tenon::host

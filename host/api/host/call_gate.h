// The calls in flight on a host, for which its end waits. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "core/plugin_call.h"

namespace tenon::host {

// Counts the calls of each thread, and refuses calls once it is closed. A thread has a counter of its own, which it
// alone writes: a call needs two moves and neither a locked instruction nor a fence, since close() makes the kernel run
// a barrier on the processors of all other threads (membarrier). Where the kernel offers none, a call has one fence.
class CallGate : base::NotCopied {
 public:
  CallGate();

  // The count of a thread. The thread alone writes it.
  struct alignas(64) Counter {
    std::atomic<uintptr_t> owner{0};  // the thread, also one that has ended; 0: none
    std::atomic<uint32_t> depth{0};   // calls of that thread that have not ended, one in the other
  };

  // Begins a call of the present thread. Returns what ends it; null if the gate is closed.
  [[nodiscard]] Counter* enter() {
    const uintptr_t thread = self();
    Counter* counter = &counters_[first_of(thread)];
    if (counter->owner.load(std::memory_order_relaxed) != thread) counter = find(true);
    if (counter == nullptr) return enter_crowded();
    const uint32_t depth = counter->depth.load(std::memory_order_relaxed) + 1;
    if (light_) {
      counter->depth.store(depth, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      counter->depth.exchange(depth, std::memory_order_seq_cst);
    }
    if (!closed_.load(std::memory_order_seq_cst)) return counter;
    counter->depth.store(depth - 1, std::memory_order_release);
    return nullptr;
  }
  // Ends it. Returns whether the gate is closed: then the caller may have to end the host.
  bool leave(Counter* counter) {
    if (counter == &crowd_) return leave_crowded();
    counter->depth.store(counter->depth.load(std::memory_order_relaxed) - 1, std::memory_order_release);
    return closed_.load(std::memory_order_relaxed);
  }

  // Refuses calls from now on. Returns false if the gate was closed before.
  bool close();
  // Whether the present thread is in a call.
  [[nodiscard]] bool is_inside();
  // Whether any thread is in a call; of a closed gate.
  [[nodiscard]] bool is_in_use();

 private:
  static constexpr unsigned kBits = 4;

  // Returns the place of a variable of the present thread, as its number.
  static uintptr_t self() { return reinterpret_cast<uintptr_t>(&core::detail::innermost_call); }
  static size_t first_of(uintptr_t thread) { return (thread * uint64_t{0x9e3779b97f4a7c15}) >> (64 - kBits); }
  // Returns the counter of the present thread; null if it has none, or if all are those of others.
  Counter* find(bool claim);
  Counter* enter_crowded();
  bool leave_crowded();

  std::array<Counter, 1u << kBits> counters_;
  Counter crowd_;  // stands for the calls of threads without a counter
  std::mutex crowded_mutex_;
  std::map<uintptr_t, uint32_t> crowded_;  // these calls
  std::atomic<bool> closed_{false};
  const bool light_;
};

}  // namespace tenon::host

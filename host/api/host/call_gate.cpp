// SPDX-License-Identifier: Apache-2.0
#include "host/api/host/call_gate.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace tenon::host {

namespace {

long membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0); }

bool has_membarrier() {
#ifdef __SANITIZE_THREAD__
  return false;  // which ThreadSanitizer does not see
#else
  const long commands = membarrier(MEMBARRIER_CMD_QUERY);
  return commands > 0 && (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0 &&
         (commands & MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) != 0;
#endif
}

}  // namespace

CallGate::CallGate() : light_(has_membarrier()) {}

bool CallGate::close() {
  const bool first = !closed_.exchange(true, std::memory_order_seq_cst);
  // Afterwards each thread has seen that the gate is closed, or its count is seen here.
  if (light_ &&
      (membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) != 0 || membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0))
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // a filter refuses it: stores take no such time
  return first;
}

bool CallGate::is_inside() {
  if (const Counter* const counter = find(false); counter != nullptr)
    return counter->depth.load(std::memory_order_relaxed) != 0;
  const std::lock_guard lock(crowded_mutex_);
  return crowded_.contains(self());
}

bool CallGate::is_in_use() {
  if (std::any_of(counters_.begin(), counters_.end(),
                  [](const Counter& counter) { return counter.depth.load(std::memory_order_acquire) != 0; }))
    return true;
  const std::lock_guard lock(crowded_mutex_);
  return !crowded_.empty();
}

CallGate::Counter* CallGate::find(bool claim) {
  const uintptr_t thread = self();
  for (size_t i = 0; i < counters_.size(); ++i) {
    Counter& counter = counters_[(first_of(thread) + i) % counters_.size()];
    uintptr_t owner = counter.owner.load(std::memory_order_relaxed);
    if (owner == thread) return &counter;
    if (owner != 0) continue;
    if (!claim) return nullptr;
    if (counter.owner.compare_exchange_strong(owner, thread)) return &counter;
  }
  return nullptr;
}

CallGate::Counter* CallGate::enter_crowded() {
  const std::lock_guard lock(crowded_mutex_);
  if (closed_.load(std::memory_order_seq_cst)) return nullptr;
  ++crowded_[self()];
  return &crowd_;
}

bool CallGate::leave_crowded() {
  const std::lock_guard lock(crowded_mutex_);
  const auto calls = crowded_.find(self());
  if (--calls->second == 0) crowded_.erase(calls);
  return closed_.load(std::memory_order_relaxed);
}

}  // namespace tenon::host

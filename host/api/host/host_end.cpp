// The end of a host beside calls in flight. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <system_error>
#include <thread>

#include "base/signals_blocked.h"
#include "host/api/api.h"
#include "host/threads/own_thread.h"

namespace {

// The hosts that ended last. They refuse calls that come too late, of a thread that has not heard of the end.
constexpr unsigned kRemembered = 64;
std::atomic<tn_host*> ended_hosts[kRemembered];
std::atomic<unsigned> hosts_ended{0};

// Polls: the calls in flight have better things to do than to wake this thread, and it happens once.
template <typename Condition>
void wait_until(const Condition& condition) {
  std::chrono::microseconds pause(10);
  while (!condition()) {
    std::this_thread::sleep_for(pause);
    pause = std::min<std::chrono::microseconds>(2 * pause, std::chrono::milliseconds(1));
  }
}

}  // namespace

void tn_host::free() noexcept {
  if (claimed_.exchange(true)) return;
  host.reset();
  freed_ = true;
  delete ended_hosts[hosts_ended++ % kRemembered].exchange(this);
}

void tn_host::end() noexcept {
  if (freed_) return;
  if (tenon::host::is_own_thread() && !gate.is_inside()) {
    // A function of the application that a thread of the host runs: the host can only end when that has returned.
    const tenon::base::SignalsBlocked signals;
    try {
      std::thread([this] { end(); }).detach();
    } catch (const std::system_error&) {  // too many threads: the host stays
    }
    return;
  }
  if (gate.close()) {
    alone_ = host->is_in_forked_child();
    host->ending = true;
  }
  if (gate.is_inside()) {
    by_call_ = true;
    return;
  }
  if (!alone_) wait_until([this] { return !gate.is_in_use(); });
  free();
  wait_until([this] { return freed_.load(); });
}

void tn_host::end_if_last() noexcept {
  if (!by_call_) return;
  const std::lock_guard lock(last_mutex_);
  if (!gate.is_in_use()) free();
}

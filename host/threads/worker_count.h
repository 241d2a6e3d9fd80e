// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace tenon::host {

// Decides how many workers take part in a region. A worker that loses its core to another process in the middle of a
// task delays the region until the system runs it again, often for the time of many steps. So after such a stall one
// worker less takes part for a while, and for twice as long if the next stall comes soon after.
class WorkerCount {
 public:
  using Clock = std::chrono::steady_clock;

  explicit WorkerCount(int32_t workers, Clock::time_point (*now)() = &Clock::now)
      : now_(now), workers_(workers), present_(workers) {}

  // Returns the number of workers for the region that begins now.
  int32_t next() {
    if (present_ == workers_) return present_;
    const Clock::time_point now = now_();
    if (now >= until_) {
      ++present_;
      set(now);
    }
    return present_;
  }
  // Call when a stall has delayed a region.
  void stalled() {
    const Clock::time_point now = now_();
    absence_ = now - changed_ < kSoon * absence_ ? std::min(2 * absence_, kLongest) : kShortest;
    present_ = std::max(1, present_ - 1);
    set(now);
  }

 private:
  static constexpr Clock::duration kShortest = std::chrono::milliseconds(50), kLongest = std::chrono::milliseconds(400);
  static constexpr int kSoon = 2;

  void set(Clock::time_point now) {
    changed_ = now;
    until_ = now + absence_;
  }

  Clock::time_point (*now_)();
  int32_t workers_, present_;
  Clock::duration absence_ = kShortest;
  Clock::time_point changed_, until_;
};

}  // namespace tenon::host

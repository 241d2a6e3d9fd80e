// Which process of a training is lost or stuck, from what the processes say. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "launch/events.h"

namespace tenon::launch {

// What a process last said of itself.
struct Progress {
  int64_t step = 0;
  std::string phase, call;  // of a plugin; empty: unknown
  int64_t waits_for = -1;   // the process whose bytes it waits for; -1: none

  bool operator==(const Progress& other) const = default;
  // Returns "step 12, phase train, layer "hidden" of plugin ...", as far as they are known.
  [[nodiscard]] std::string text() const;
};

struct WatchOptions {
  Clock::duration silence = std::chrono::milliseconds(1500);
  Clock::duration stall = {};                        // 0: follows from the steps so far
  Clock::duration start = std::chrono::minutes(10);  // before the first step, and in all phases but "train"
};

// A process that is not as it should be.
struct Fault {
  size_t process;
  bool stuck;  // else silent
  Clock::duration since;
};

// Times are given by the caller, so that it may be tested without waiting. A process is watched from its first beat on,
// until it is dropped.
class Watch {
 public:
  Watch(WatchOptions options, size_t processes) : options_(options), states_(processes) {}

  void begin(Clock::time_point now);
  // The same for one process, which is watched anew.
  void begin(size_t process, Clock::time_point now);
  void beat(size_t process, const Progress& progress, Clock::time_point now);
  void drop(size_t process) { states_[process].watched = false; }
  // Takes a time out of the account in which the launcher itself did not run, or kept the processes waiting.
  void forgive(Clock::duration time);

  // Returns what a process last said, with the phase of process 0 if both are watched and it trains: process 0 alone
  // tells steps from tests.
  [[nodiscard]] Progress progress(size_t process) const;
  // Whether all processes have said that they are past the join of the team.
  [[nodiscard]] bool have_joined() const;
  // Returns the processes that wait for this one.
  [[nodiscard]] std::vector<size_t> waiting_for(size_t process) const;
  // Returns the first process that is silent; if none is, the one that is stuck at the lowest step. A process that
  // waits for another one is not stuck, unless all wait for one another.
  [[nodiscard]] std::optional<Fault> fault(Clock::time_point now) const;
  // Returns how long a process may stay at its step.
  [[nodiscard]] Clock::duration patience(size_t process) const;

 private:
  struct State {
    bool watched = true, spoke = false;
    Progress progress;
    Clock::time_point heard, moved;     // moved: with any change
    Clock::time_point placed;           // since when it has its step and phase
    std::deque<Clock::duration> steps;  // the last ones
  };
  [[nodiscard]] bool waits_for_a_running_one(size_t process) const;

  WatchOptions options_;
  std::vector<State> states_;
};

}  // namespace tenon::launch

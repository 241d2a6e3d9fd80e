// Waits for descriptors and signals. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <csignal>
#include <functional>
#include <initializer_list>
#include <vector>

#include "base/files.h"
#include "base/not_copied.h"

namespace tenon::launch {

using Clock = std::chrono::steady_clock;

// A descriptor that is waited for; ready: called when it can be read or written, or is at its end.
struct Wait {
  int descriptor;
  short events;  // POLLIN, POLLOUT
  std::function<void()> ready;
};
// Waits until one of them is ready, or until the time has come, and calls those that are.
void wait_for(const std::vector<Wait>& waits, Clock::time_point until);

// While it lives, these signals are read from a descriptor and have no other effect. One that is ignored stays ignored.
// SIGPIPE is ignored.
class Signals : base::NotCopied {
 public:
  explicit Signals(std::initializer_list<int> signals);
  ~Signals();

  [[nodiscard]] int descriptor() const { return descriptor_.get(); }
  // Returns a signal that has come, 0 without one.
  [[nodiscard]] int next() const noexcept;
  // In a child: restores what was before.
  void restore() const noexcept;

 private:
  sigset_t before_;
  struct sigaction pipe_before_;
  base::Descriptor descriptor_;
};

}  // namespace tenon::launch

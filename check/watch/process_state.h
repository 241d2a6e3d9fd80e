// What a plugin may change of the process that it is in: nothing. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "check/watch/floating_point.h"

namespace tenon::check {

// Of a child process: limits its data to 8 GiB or half of the memory of the machine, lets copies that a plugin makes by
// fork() end with it, and sends its standard output to a file without a name, which expect_unchanged looks at.
void confine_process();

// The process at the moment of the construction.
struct ProcessState {
  using Handler = void (*)(int);
  ProcessState();

  std::vector<Handler> handlers;  // of signals, from 1
  FloatingPoint mode;             // of this thread
  std::vector<int> descriptors;   // that are open
  std::string folder, locale;
  mode_t mask;                                    // of new files
  std::vector<std::string> environment;           // sorted
  std::vector<std::pair<rlim_t, rlim_t>> limits;  // by resource
  std::vector<bool> timers;                       // virtual, of the profiler: whether they run
  int priority;
  off_t written;  // bytes of standard output
};

// Tells of a comparison whether it is good, else what is wrong.
using Expectation = std::function<void(bool good, const std::string& text)>;
// Does the work, and expects that the process is then as it was before: of the timers, as at the call.
void expect_unchanged(const ProcessState& start, const std::function<void()>& work, const Expectation& expect);

}  // namespace tenon::check

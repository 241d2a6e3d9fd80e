// What a plugin may change of the process that it is in: nothing. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "check/floating_point.h"

namespace tenon::check {

class Context;

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

// The meaning of the check "process" of each kind of component.
constexpr const char* kProcessMeaning =
    "signal handlers, floating-point mode, descriptors, working directory, locale, mask of new files, environment, "
    "limits, timers, priority and standard output stay";

// Does the work. Throws Fault unless the process is as it was when the context was made.
void expect_unchanged(Context& context, const std::function<void()>& work);

}  // namespace tenon::check

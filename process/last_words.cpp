// SPDX-License-Identifier: Apache-2.0
#include "process/last_words.h"

#include <unistd.h>

#include <cstdlib>

namespace tenon::process {

namespace {

// A handler has no argument, so these are static variables.
void (*on_crash)(int) = nullptr;
const void* volatile accessed = nullptr;

}  // namespace

const void* crash_address() noexcept { return accessed; }

void watch_end(void (*crashed)(int), void (*exited)()) {
  on_crash = crashed;
  std::atexit(exited);
  static char stack[64 * 1024];  // more than MINSIGSTKSZ of any machine with AVX-512; a process has one for this
  stack_t alternative = {};
  alternative.ss_sp = stack;
  alternative.ss_size = sizeof stack;
  sigaltstack(&alternative, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = [](int signal, siginfo_t* info, void*) {
    accessed = info->si_addr;
    on_crash(signal);
  };
  action.sa_flags = static_cast<int>(SA_SIGINFO | SA_RESETHAND | SA_ONSTACK | SA_NODEFER);
  sigemptyset(&action.sa_mask);
  for (const int signal : kCrashes) sigaction(signal, &action, nullptr);
}

void alarm_in(unsigned seconds, void (*late)(int)) noexcept {
  std::signal(SIGALRM, late);
  sigset_t alarms;
  sigemptyset(&alarms);
  sigaddset(&alarms, SIGALRM);
  sigprocmask(SIG_UNBLOCK, &alarms, nullptr);
  alarm(seconds);
}

}  // namespace tenon::process

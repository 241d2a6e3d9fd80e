// What a process reports when a plugin ends it. POSIX alone. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <cstddef>

namespace tenon::process {

// The signals of a crash. Constants alone: handlers read them.
inline constexpr int kCrashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

// Makes the signals of a crash call `crashed`, once: the default action is restored before, so that a handler may raise
// the signal again. It runs on a stack of its own, also with an exhausted stack, on the thread that called this
// function. Makes exit() call `exited`. Both are called at any moment: they may call what is safe in handlers alone.
void watch_end(void (*crashed)(int signal), void (*exited)());
// In `crashed` of SIGSEGV or SIGBUS: the address that was accessed; null before.
const void* crash_address() noexcept;

// Makes SIGALRM call `late` in so many seconds from now, 0: never. `late` is a handler as above, or SIG_DFL.
void alarm_in(unsigned seconds, void (*late)(int signal)) noexcept;

}  // namespace tenon::process

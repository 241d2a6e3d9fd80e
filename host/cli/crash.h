// The last words of a program that crashes. SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tenon::cli {

// Makes a signal that reports a crash (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT) print one line to standard error, with
// the call of a plugin that the thread was in, before it ends the process as without this call. Works with an exhausted
// stack, too, on the thread that called this function. Does the same for a plugin that calls exit, and then ends the
// process with the code of a defect.
void tell_crashes();

// A handler of SIGALRM for a process that must end by then: prints one line to standard error, with the call of a
// plugin that the thread is in, and ends the process with the code of a defect.
void tell_late(int signal);

// Runs the exit handlers of the plugins, so that a crash in them names the plugin. After so many seconds the process
// ends as by tell_late; 0: an alarm that was set before stays. No host may live.
void leave_plugins(unsigned seconds);

}  // namespace tenon::cli

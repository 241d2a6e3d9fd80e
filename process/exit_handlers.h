// The exit handlers of plugins: functions of atexit, and destructors of static objects. For glibc alone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tenon::process {

// Runs the exit handlers of the plugins of this process, those of the last one first, so that exit() does not run them
// again, and calls enter(id) before those of each. No thread may use a plugin then or later.
void run_exit_handlers(void (*enter)(const char* plugin));

// Returns the id of the plugin whose exit handlers run at present, null if none do. For handlers of signals, too.
[[nodiscard]] const char* exiting() noexcept;

}  // namespace tenon::process

// SPDX-License-Identifier: Apache-2.0
#include "host/cli/crash.h"

#include <tenon/tenon.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "host/cli/cli.h"
#include "process/exit_handlers.h"
#include "process/last_words.h"

namespace tenon::cli {

namespace {

struct Crash {
  int signal;
  const char* name;
};
constexpr Crash kCrashes[] = {{SIGSEGV, "segmentation fault"},
                              {SIGBUS, "bus error"},
                              {SIGFPE, "arithmetic error"},
                              {SIGILL, "illegal instruction"},
                              {SIGABRT, "aborted"}};

// One line, in a buffer of its own: a handler must not allocate memory. Control characters become "?".
class Line {
 public:
  void append(const char* text) {
    for (; *text != '\0' && length_ + 1 < sizeof text_; ++text)
      text_[length_++] = *text >= ' ' || static_cast<signed char>(*text) < 0 ? *text : '?';
  }
  void print() {
    text_[length_++] = '\n';
    for (size_t at = 0; at < length_;) {
      const ssize_t written = write(STDERR_FILENO, text_ + at, length_ - at);
      if (written <= 0) return;
      at += static_cast<size_t>(written);
    }
  }

 private:
  char text_[1024];
  size_t length_ = 0;
};

// Appends what of a plugin runs on this thread; returns whether there is something.
bool append_plugin(Line& line) {
  char call[800];
  if (const char* const plugin = process::exiting()) {
    line.append(" in the exit handlers of plugin ");
    line.append(plugin);
    return true;
  }
  if (tn_plugin_call(call, sizeof call) == 0) return false;
  line.append(" in ");
  line.append(call);
  return true;
}

// SA_RESETHAND has restored the default action, which ends the process when the signal comes again.
void tell(int signal) {
  Line line;
  line.append("tenon: ");
  for (const Crash& crash : kCrashes)
    if (crash.signal == signal) line.append(crash.name);
  (void)append_plugin(line);
  line.print();
  raise(signal);
}

// A plugin that ends the process would otherwise look like a program that is done.
void tell_exit() {
  Line line;
  line.append("tenon: the process was ended");
  if (!append_plugin(line)) return;
  line.print();
  _exit(kInternal);
}

}  // namespace

void tell_late(int /*signal*/) {
  Line line;
  line.append("tenon: the deadline has passed");
  (void)append_plugin(line);
  line.print();
  _exit(kInternal);
}

void leave_plugins(unsigned seconds) {
  if (seconds > 0) process::alarm_in(seconds, tell_late);
  process::run_exit_handlers([](const char*) {});
}

void tell_crashes() { process::watch_end(tell, tell_exit); }

}  // namespace tenon::cli

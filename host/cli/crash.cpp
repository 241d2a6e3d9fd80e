// SPDX-License-Identifier: Apache-2.0
#include "host/cli/crash.h"

#include <tenon/tenon.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "check/last_words.h"
#include "host/cli/cli.h"

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
      text_[length_++] = *text >= ' ' || *text < 0 ? *text : '?';
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

// SA_RESETHAND has restored the default action, which ends the process when the signal comes again.
void tell(int signal) {
  char call[800];
  const bool in_plugin = tn_plugin_call(call, sizeof call) > 0;
  Line line;
  line.append("tenon: ");
  for (const Crash& crash : kCrashes)
    if (crash.signal == signal) line.append(crash.name);
  if (in_plugin) {
    line.append(" in ");
    line.append(call);
  }
  line.print();
  raise(signal);
}

// A plugin that ends the process would otherwise look like a program that is done.
void tell_exit() {
  char call[800];
  if (tn_plugin_call(call, sizeof call) == 0) return;
  Line line;
  line.append("tenon: the process was ended in ");
  line.append(call);
  line.print();
  _exit(kInternal);
}

}  // namespace

void tell_late(int /*signal*/) {
  char call[800];
  const bool in_plugin = tn_plugin_call(call, sizeof call) > 0;
  Line line;
  line.append("tenon: the deadline has passed");
  if (in_plugin) {
    line.append(" in ");
    line.append(call);
  }
  line.print();
  _exit(kInternal);
}

void tell_crashes() { check::watch_end(tell, tell_exit); }

}  // namespace tenon::cli

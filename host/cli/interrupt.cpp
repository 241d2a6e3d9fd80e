// SPDX-License-Identifier: Apache-2.0
#include "host/cli/interrupt.h"

#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace tenon::cli {

namespace {

volatile std::sig_atomic_t noted = 0;  // a type that a signal handler may write

tn_cancel* volatile to_request = nullptr;

constexpr unsigned kPatience = 2;  // seconds

// Keeps the first signal, which decides the exit code.
void note(int signal) {
  if (noted == 0) noted = signal;
  tn_cancel_request(to_request);
  alarm(kPatience);
}

// Says why the program still runs: a plugin may take its time in a call, or never return.
void explain(int) {
  const int failure = errno;
  constexpr std::string_view kText =
      "tenon: ends behind the current minibatch; the same signal again ends it at once\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kText.data(), kText.size());
  errno = failure;
}

// Installs `action`, unless the program was started with the signal ignored, as in the background.
void install(int signal, const struct sigaction& action, struct sigaction& before) {
  sigaction(signal, &action, &before);
  if (before.sa_handler == SIG_IGN) sigaction(signal, &before, nullptr);
}

}  // namespace

Interrupt::Interrupt(const Cancel& cancel) : cancel_(cancel) {
  noted = 0;
  to_request = cancel_.get();
  struct sigaction action = {};
  action.sa_handler = note;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);  // reads and writes are restarted
  sigemptyset(&action.sa_mask);
  install(SIGINT, action, before_int_);
  install(SIGTERM, action, before_term_);
  action.sa_flags = static_cast<int>(SA_RESTART);
  install(SIGHUP, action, before_hup_);
  install(SIGXCPU, action, before_xcpu_);
  action.sa_handler = explain;
  sigaction(SIGALRM, &action, &before_alarm_);
}

Interrupt::~Interrupt() {
  alarm(0);
  sigaction(SIGALRM, &before_alarm_, nullptr);
  sigaction(SIGINT, &before_int_, nullptr);
  sigaction(SIGTERM, &before_term_, nullptr);
  sigaction(SIGHUP, &before_hup_, nullptr);
  sigaction(SIGXCPU, &before_xcpu_, nullptr);
  to_request = nullptr;
}

int Interrupt::signal() { return noted; }

}  // namespace tenon::cli

// Blocks signals while threads are started. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <csignal>

#include "base/not_copied.h"

namespace tenon::base {

// Blocks the signals of the calling thread while it lives, but those of crashes. Threads started in that time inherit
// the mask, so signals are handled on the application's own threads. A crash raises its signal on the thread itself: if
// that were blocked, the process would end without the application's handler.
class SignalsBlocked : base::NotCopied {
 public:
  SignalsBlocked() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int crash : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) sigdelset(&blocked, crash);
    pthread_sigmask(SIG_SETMASK, &blocked, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace tenon::base

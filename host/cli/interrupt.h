// Ctrl-C, SIGTERM and SIGHUP as a wish to stop, for work that can end cleanly. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>

namespace tenon::cli {

// While one lives, the first such signal is only noted; the second Ctrl-C or SIGTERM ends the process as it would
// without. SIGHUP never does: a terminal that goes sends it more than once.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // The signal's number, or 0.
  [[nodiscard]] static int signal();

 private:
  struct sigaction before_int_, before_term_, before_hup_;
};

}  // namespace tenon::cli

// Ctrl-C, SIGTERM, SIGHUP and SIGXCPU as requests to stop, for work that can end cleanly.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <tenon/tenon.hpp>

#include "base/not_copied.h"

namespace tenon::cli {

// While it lives, the first such signal is only recorded; if the work goes on for seconds, a line says so. A second
// Ctrl-C or SIGTERM ends the process as usual. SIGHUP never does: a terminal that closes sends it more than once. Nor
// does SIGXCPU, which the system sends every second beyond the soft limit of processor time.
class Interrupt : base::NotCopied {
 public:
  // cancel: requested by the signal, so that a call that names it ends.
  explicit Interrupt(const Cancel& cancel = {});
  ~Interrupt();

  // The number of the recorded signal, or 0.
  [[nodiscard]] static int signal();

 private:
  const Cancel cancel_;
  struct sigaction before_int_, before_term_, before_hup_, before_xcpu_, before_alarm_;
};

}  // namespace tenon::cli

// A machine that a call lends to the application. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <memory>

#include "host/api/host/host.h"

namespace tenon::host::api {

// Calls `work`, a function of the application that may use the machine of the call around it; then `end`. use: that of
// the call; null meanwhile. Throws TN_MISUSE if another thread is in a call on the machine afterwards, or holds a
// lease.
template <typename Work, typename End>
void while_lent(HeldMachine& held, std::unique_ptr<Use>& use, Machine::Lending lending, const Work& work,
                const End& end) {
  const auto take_back = [&] {
    end();
    use = std::make_unique<Use>(held.mark, "machine");
    held.machine->lend(Machine::Lending::kNone);
    held.require_unleased();
  };
  held.machine->lend(lending);
  use.reset();
  std::exception_ptr failure;
  try {
    work();
  } catch (...) {
    failure = std::current_exception();
  }
  try {
    take_back();
  } catch (...) {
    if (!failure) throw;
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace tenon::host::api

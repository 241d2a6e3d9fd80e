// Reads the options of teams from dicts. Written by host/api/spec/generate_options.py.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "options.h"

namespace tenon_python {

inline void read(const nb::dict& from, tenon::TeamOptions* to) {
  take(from, "comm", &to->comm);
  take(from, "attributes", &to->attributes);
  take(from, "rank", &to->rank);
  take(from, "processes", &to->processes);
  take(from, "epoch", &to->epoch);
  take(from, "address", &to->address);
  take(from, "listen", &to->listen);
  take(from, "secret", &to->secret);
  take(from, "deadline_seconds", &to->deadline_seconds);
  take(from, "servers", &to->servers);
  take(from, "silence_seconds", &to->silence_seconds);
}

}  // namespace tenon_python

// The launcher's hand on a machine: starts the processes of a training there, tells the launcher what they do and
// print, and ends them when the launcher asks for it or is lost. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/files.h"

namespace tenon::launch {

// Serves a launcher over standard input and output until it ends, and returns the exit code of the program. Lines of
// JSON from the launcher:
//   {"ping": 1}                 nothing; the launcher is there
//   {"prepare": {...}}          is answered by {"prepared": {...}} or {"refused": {"code": 78, "message": ...}}
//   {"start": {...}}            starts processes
//   {"kill": 2}                 ends process 2 at once
//   {"stop": "signal 2"}        passes the line on to all processes
//   {"end": "reason"}           ends all: the line {"stop": reason} and SIGTERM, SIGKILL 2 seconds later
//   {"pause": true}             reads nothing of what the processes print
// To the launcher: {"hello": {...}} first; {"process": 2, ...} with "control", a line of the process, with "out" or
// "err", what it prints, or with "end", how it has ended.
int run_agent();
// Likewise over a socket, in a pod: after a signal the launcher has some seconds to end all in good order. Returns
// whether the launcher has said {"finish": 1}, that no other one will come, or a signal has come.
bool run_agent_over(base::Descriptor socket);
// Likewise for an agent that the launcher of an MPI has started, with one process, over the socket of a World. comm: of
// that MPI.
int run_agent_of_world(const std::string& socket, const std::string& comm);

}  // namespace tenon::launch

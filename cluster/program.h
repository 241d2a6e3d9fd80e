// A program in a cluster, each process of which finds its team. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/cli/cli.h"

namespace tenon::cluster {

// Runs `tenon dist program FILE [ARG]...`: FILE and other files beside it by python3 in pods, and brings what process 0
// leaves as its result. Returns the exit code.
int run_program(const cli::Arguments& arguments);

}  // namespace tenon::cluster

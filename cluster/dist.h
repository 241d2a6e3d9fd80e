// `tenon dist`: trainings in a cluster. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/cli/cli.h"

namespace tenon::cluster {

// Runs `tenon dist status | logs | stop`, or with --cluster `tenon train`, and returns the exit code.
int run_dist(const cli::Arguments& arguments);

}  // namespace tenon::cluster

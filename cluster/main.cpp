// The program tenon-dist, which `tenon train --cluster` and `tenon dist` run. SPDX-License-Identifier: Apache-2.0
#include "cluster/dist.h"
#include "host/cli/program.h"

int main(int argc, char** argv) { return tenon::cli::program(argc, argv, tenon::cluster::run_dist); }

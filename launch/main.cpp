// The program tenon-launch, which `tenon train --processes` and `tenon launch` run. SPDX-License-Identifier: Apache-2.0
#include "host/cli/program.h"
#include "launch/verb.h"

int main(int argc, char** argv) { return tenon::cli::program(argc, argv, tenon::launch::run_launch); }

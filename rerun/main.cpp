// The program tenon-rerun, which `tenon rerun` runs. SPDX-License-Identifier: Apache-2.0
#include "host/cli/program.h"
#include "rerun/verb.h"

int main(int argc, char** argv) { return tenon::cli::program(argc, argv, tenon::rerun::run_rerun); }

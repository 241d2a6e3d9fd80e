// What the programs of Tenon have in common: failures end with a message and an exit code, crashes with last words.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/cli/cli.h"

namespace tenon::cli {

// The body of main: runs `run` with the arguments behind the name of the program, and returns the exit code.
int program(int argc, char** argv, int (*run)(const Arguments& arguments));

}  // namespace tenon::cli

// What the programs of Tenon have in common: failures end with a message and an exit code, crashes with last words.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "host/cli/cli.h"

namespace tenon::cli {

// Calls `run` and returns its exit code, or that of its failure, which is reported on standard error.
[[nodiscard]] int guarded(const std::function<int()>& run);
// The body of main: runs `run` with the arguments behind the name of the program, and returns the exit code.
[[nodiscard]] int program(int argc, char** argv, int (*run)(const Arguments& arguments));

}  // namespace tenon::cli

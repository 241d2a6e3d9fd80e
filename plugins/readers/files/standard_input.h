// Standard input as a file. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace tenon::files {

// Returns a path that opens standard input as a regular file, from its beginning, as often as it is opened. If it is a
// pipe, a socket or a terminal, copies what it has into a temporary file without a name, which becomes the standard
// input of the process: so every reader finds the same data. Throws tn::Failure if that is more than `most` bytes. Not
// for several threads at once.
std::string standard_input(uint64_t most, const volatile int32_t* cancel);

}  // namespace tenon::files

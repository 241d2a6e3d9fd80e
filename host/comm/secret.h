// The secret of a start, by which the processes of a team know each other. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::host {

// Reads it from a file that its owner alone may read, or from an inherited descriptor, "fd:7", which is closed. Empty
// for an empty `source`. Throws TN_IO for what cannot be read, TN_REFUSED for a file that others may read, TN_BAD_DATA
// for less than 16 bytes or more than 4096.
[[nodiscard]] std::vector<uint8_t> read_secret(const std::string& source);

}  // namespace tenon::host

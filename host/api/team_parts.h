// What computes in a process, beside the job. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "host/plugins/registry.h"

namespace tenon::host {

// Returns the kind of processor and, for each plugin that is loaded from a file, the digest of the file, by names for
// messages.
[[nodiscard]] std::map<std::string, std::string> team_parts(const Registry& registry);

}  // namespace tenon::host

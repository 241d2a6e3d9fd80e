// Versions and digests of what computes: program, library and plugins. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <tenon/tenon.hpp>

namespace tenon::cli {

// Returns {program, library}, each {version, sha256}.
[[nodiscard]] nlohmann::json software();
// Adds the plugins that the host has loaded to a list, [{id, version, file, sha256}], unless it has them; file: its
// name alone.
void add_loaded_plugins(const Host& host, nlohmann::json& list);

}  // namespace tenon::cli

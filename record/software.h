// Versions and digests of what computes: program, library and plugins. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "record/record.h"

namespace tenon::record {

// Returns {version, sha256} of a file; empty: it is unknown.
[[nodiscard]] nlohmann::json software(const Surroundings& surroundings, const std::string& version,
                                      const std::string& file);
// Returns the path of the library or program that a function belongs to; empty if it is unknown.
[[nodiscard]] std::string file_of(const void* function);
// Adds the plugins that are loaded to a list, [{id, version, file, sha256}], unless it has them; file: its name alone.
// plugins: as tn_host_plugins lists them.
void add_loaded_plugins(const Surroundings& surroundings, const nlohmann::json& plugins, nlohmann::json& list);

}  // namespace tenon::record

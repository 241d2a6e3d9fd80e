// YAML as JSON, and back. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace tenon::cluster {

using json = nlohmann::ordered_json;

// Returns the first document of a file. Numbers and truth values that are not in quotes become such. Throws
// cli::Failure naming the file and the place.
[[nodiscard]] json read_yaml(const std::string& path);
// Returns a document, with "---" before it.
[[nodiscard]] std::string write_yaml(const json& value);

}  // namespace tenon::cluster

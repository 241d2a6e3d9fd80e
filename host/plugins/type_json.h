// Descriptions of types as JSON, for tn_type_describe.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "host/plugins/registry.h"

namespace tenon::host {

// Returns the names that other frameworks have for a type, for suggestions: those of the sentence "Other names: a, b."
// in its documentation.
[[nodiscard]] std::vector<std::string> other_names(const std::string& doc);

[[nodiscard]] const char* role_name(int32_t role);  // of TN_ROLE_*: "layer", "cost", "metric"

[[nodiscard]] nlohmann::json to_json(const LayerDescription& layer);
[[nodiscard]] nlohmann::json to_json(const UpdaterDescription& updater);
[[nodiscard]] nlohmann::json to_json(const ReaderDescription& reader);
[[nodiscard]] nlohmann::json to_json(const CommDescription& comm);

}  // namespace tenon::host

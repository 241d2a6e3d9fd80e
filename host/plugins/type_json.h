// Descriptions of types as JSON, for tn_type_describe.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "host/plugins/registry.h"

namespace tenon::host {

[[nodiscard]] const char* role_name(int32_t role);  // of TN_ROLE_*: "layer", "cost", "metric"

[[nodiscard]] nlohmann::json to_json(const LayerDescription& layer);
[[nodiscard]] nlohmann::json to_json(const UpdaterDescription& updater);
[[nodiscard]] nlohmann::json to_json(const ReaderDescription& reader);

}  // namespace tenon::host

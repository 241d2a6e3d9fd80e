// What a machine or an image has of Tenon. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

namespace tenon::launch {

// Returns {"version": "0.4.0", "plugins": {"tenon.fc": "5f3a..."}}: the plugins that `tenon` finds here, by the BLAKE2b
// of 16 bytes of their files. Without the program, or if that fails, "plugins" is empty.
[[nodiscard]] nlohmann::json image_here();

}  // namespace tenon::launch

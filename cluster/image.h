// How an image differs from this machine. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cluster/yaml.h"

namespace tenon::cluster {

// Returns what to say of plugins that are not the same: "tenon.fc is 5f3a9c01 in the image, 2348c2fc here, ..."; empty
// if all are, or one side is unknown. there, here: as launch::image_here() returns them.
[[nodiscard]] std::string differences(const json& there, const json& here);

}  // namespace tenon::cluster

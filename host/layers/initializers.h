// First values of single parameters, stated by the host attributes param.<suffix>.init and init_*:
//   init = "constant"         init_value
//   init = "uniform"          in [init_low, init_high)
//   init = "normal"           init_mean (0), init_std
//   init = "xavier_uniform"   in +-init_gain (1) * sqrt(6 / (fan_in + fan_out))
//   init = "xavier_normal"    deviation init_gain (1) * sqrt(2 / (fan_in + fan_out))
//   init = "kaiming_uniform"  in +-init_gain (sqrt(2)) * sqrt(3 / fan_in)
//   init = "kaiming_normal"   deviation init_gain (sqrt(2)) / sqrt(fan_in)
// Numbers in parentheses are defaults. fan_in and fan_out are the rows and columns of a matrix, as fc has them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/layer.h>

#include <optional>
#include <string>
#include <vector>

#include "core/attribute.h"
#include "core/shape.h"

namespace tenon::host {

using namespace core;

// The keys of param.<suffix>.<key> that belong to initializers.
[[nodiscard]] std::vector<std::string> initializer_keys();

// Returns the initializer that the attributes `given` of a layer state for its parameter or buffer `suffix`, which has
// the constant dimensions `shape`; nothing if they state none. TN_INVALID names the attribute.
[[nodiscard]] std::optional<tn_initializer> stated_initializer(const Values& given, const std::string& suffix,
                                                               const Shape& shape);

}  // namespace tenon::host

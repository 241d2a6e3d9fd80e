// First values of single parameters, stated by the host attributes param.<suffix>.init and init_*:
//   init = "constant"         init_value
//   init = "uniform"          in [init_low, init_high)
//   init = "normal"           init_mean (0), init_std
//   init = "truncated_normal" around 0, init_std, none further off than init_bound (2) times it
//   init = "xavier_uniform"   in +-gain (1) * sqrt(6 / (fan_in + fan_out))
//   init = "xavier_normal"    deviation gain (1) * sqrt(2 / (fan_in + fan_out))
//   init = "kaiming_uniform"  in +-gain (sqrt(2)) * sqrt(3 / fan)
//   init = "kaiming_normal"   deviation gain (sqrt(2)) / sqrt(fan)
//   init = "orthogonal"       gain (1) times a matrix with orthonormal rows or columns
// Numbers in parentheses are defaults. The gain is init_gain or that of init_nonlinearity, "leaky_relu" with init_slope
// (0.01). fan_in and fan_out are the rows and columns of a matrix, as fc has them; fan is that which init_mode
// ("fan_in") names. SPDX-License-Identifier: Apache-2.0
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

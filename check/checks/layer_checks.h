// The checks of layers, costs and metrics. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "check/checks/check_list.h"

namespace tenon::check {

[[nodiscard]] const std::vector<Check>& layer_checks();

}  // namespace tenon::check

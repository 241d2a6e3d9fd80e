// The checks of devices, and of providers of tables. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "check/checks/check_list.h"

namespace tenon::check {

[[nodiscard]] const std::vector<Check>& device_checks();
[[nodiscard]] const std::vector<Check>& provider_checks();

}  // namespace tenon::check

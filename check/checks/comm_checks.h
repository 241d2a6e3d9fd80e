// The checks of communicators. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "check/checks/check_list.h"

namespace tenon::check {

[[nodiscard]] const std::vector<Check>& comm_checks();

}  // namespace tenon::check

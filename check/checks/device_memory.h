// Checks of the memory, the streams and the events of a device. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "check/checks/check_list.h"

namespace tenon::check {

void check_copies(Context& context);
void check_streams(Context& context);

}  // namespace tenon::check

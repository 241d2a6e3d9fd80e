// Checks of gradients: the layer's own forward in fp64 is the function. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "check/checks/check_list.h"

namespace tenon::check {

void check_gradient(Context& context);
void check_request(Context& context);
void check_float32(Context& context);

}  // namespace tenon::check

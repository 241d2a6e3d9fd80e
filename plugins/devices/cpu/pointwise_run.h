// Runs the code of a pointwise program. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device.h>

#include "pointwise_code.h"

namespace tenon::cpu {

// Reports what is wrong with the call, if anything; allocates nothing.
tn_status run_pointwise(const Binding& binding, const tn_execution& execution, const tn_call& call);

}  // namespace tenon::cpu

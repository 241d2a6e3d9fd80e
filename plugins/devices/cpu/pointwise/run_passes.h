// Runs the code of a pointwise program. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device.h>

#include "pointwise/generate_code.h"

namespace tenon::cpu {

// What makes rows of an input just before they are read, in the code of a binding with prescribed chunks.
struct RowMaker {
  void (*make)(const void* self, int64_t first, int64_t last);
  const void* self;
};

// Reports what is wrong with the call, if anything; allocates nothing.
tn_status run_pointwise(const Binding& binding, const tn_execution& execution, const tn_call& call,
                        const RowMaker* maker = nullptr);

}  // namespace tenon::cpu

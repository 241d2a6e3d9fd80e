// Runs the code of a pointwise program. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device.h>

#include "pointwise/generate_code.h"

namespace tenon::cpu {

// Computes rows [first, last) of an input just before a chunk reads them. For bindings generated with Chunks. worker:
// below Binding::workers; no two calls at the same time have the same one.
struct RowMaker {
  void (*make)(const void* self, int64_t first, int64_t last, int32_t worker);
  const void* self;
};

// Runs the passes. Reports a wrong or missing operand and negative sizes. Allocates nothing. maker: null if all inputs
// are in memory.
tn_status run_pointwise(const Binding& binding, const tn_execution& execution, const tn_call& call,
                        const RowMaker* maker = nullptr);

}  // namespace tenon::cpu

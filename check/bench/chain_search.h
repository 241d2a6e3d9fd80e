// Cases of a kernel with a fusion pattern: chains of layers. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "check/bench/subject.h"
#include "check/cases/layer_case.h"

namespace tenon::check {

// Returns the author's cases with a chain if there are any, else at most `most` chains of the types of subject.chain
// that the layers' plans and, unless `plans_alone`, the kernel accept; each twice, the second time with readers of the
// outputs inside the chain. Throws Fault if there are none.
[[nodiscard]] std::vector<LayerCase> chain_cases(const Subject& subject, size_t most, bool plans_alone);

}  // namespace tenon::check

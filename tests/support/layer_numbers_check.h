// Parts of check_layer: outputs against the formula, also for zeros, ties, tiny and huge numbers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tests/support/layer_bench.h"

namespace tenon_tests {

using namespace tenon;

// Checks every output and the cost, in fp64 and fp32, in training and not; drawn numbers twice. Returns the number of
// checks.
int64_t check_forward(const LayerCase& layer, const Bench& bench, int64_t samples);

// Checks the same for floats that are all 0, of two values, tiny or huge, as far as the layer takes them. Their
// gradients must be finite, and those of fp32 equal to those of fp64. For floats that are 0 or equal, each gradient
// must lie between the slopes of the formula on either side, which differ at a kink.
int64_t check_numbers(const LayerCase& layer, int64_t samples);

}  // namespace tenon_tests

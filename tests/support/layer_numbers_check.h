// Parts of check_layer: outputs against the formula, also for zeros, ties, tiny and huge numbers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tests/support/layer_bench.h"

namespace tenon_tests {

using namespace tenon;

// Every output and the cost, in fp64 and fp32, in training and not, drawn numbers twice. Gives the number of checks.
int64_t check_forward(const LayerCase& layer, const Bench& bench, int64_t samples);

// The same where the floats that are fed are all 0, of two values, tiny or huge, as far as the layer takes such. There
// gradients are finite and those of fp32 are those of fp64; where floats are 0 or equal each lies between the slopes of
// the formula on either side, which differ where it has a kink.
int64_t check_numbers(const LayerCase& layer, int64_t samples);

}  // namespace tenon_tests

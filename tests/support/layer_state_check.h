// Parts of check_layer: what outlives a step. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tests/support/layer_bench.h"

namespace tenon_tests {

using namespace tenon;

// The bits of every output, of the cost and of every gradient in fp32. `outputs` are those of the machine.
std::vector<double> bits_of_a_step(const Bench& bench, const Machine& machine, const Layers& outputs, int64_t samples);

// The model is saved, loaded in another host and gives the same bits; saved again it is the same file. Gives the number
// of checks.
int64_t check_file(const LayerCase& layer, int64_t samples);

// Buffers are next values that the host commits: running forward again changes nothing, an update commits what the last
// forward made once, a frozen buffer and an empty minibatch commit nothing. No check where there are no buffers.
int64_t check_buffers(const LayerCase& layer, int64_t samples);

}  // namespace tenon_tests

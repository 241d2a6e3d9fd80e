// A part of check_layer: buffers and saved models. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tests/support/layer_bench.h"

namespace tenon_tests {

using namespace tenon;

// The bits of every output, of the cost if there is one, and of every gradient in fp32. `outputs` are those of the
// machine.
Numbers bits_of_a_step(const Bench& bench, const Machine& machine, const Layers& outputs, int64_t samples);

// Saves the model and loads it in another host, where it must give the same bits; saved again it must be the same file.
// Returns the number of checks.
int64_t check_file(const LayerCase& layer, int64_t samples);

// Checks that forward and backward leave buffers unchanged, that an update commits the next values of the last forward
// once, and that a frozen buffer and an empty minibatch commit nothing. Returns the number of checks: 0 without
// buffers.
int64_t check_buffers(const LayerCase& layer, int64_t samples);

}  // namespace tenon_tests

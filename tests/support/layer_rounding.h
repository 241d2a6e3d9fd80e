// A part of check_layer: the allowed rounding error of each number.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/support/layer_bench.h"

namespace tenon_tests {

using namespace tenon;

// Scales of rounding errors: the size of a number or, if its terms cancel, the size of the terms. The scale is
// measured: all inputs are changed by a small relative share, and the change of the number divided by the share is the
// error that rounded inputs can cause. The largest of a few draws counts.

// The scale of each number of a formula's result.
[[nodiscard]] Numbers scales_of(const Bench& bench, const Formula& formula, const FormulaArguments& arguments);
// The scale of each number of an output, with LayerCase::rounded taken into account.
[[nodiscard]] Numbers output_scales(const Bench& bench, size_t output, const FormulaArguments& arguments);

using Gradients = std::map<std::string, Numbers>;  // by parameter

// The gradients of one minibatch, computed by a new machine.
[[nodiscard]] Gradients gradients_of(const Bench& bench, tn_dtype compute, int64_t samples);
// The scale of each number of a gradient, measured by an fp64 machine on changed numbers. `exact`: the gradients of
// `bench`.
[[nodiscard]] Gradients gradient_scales(const Bench& bench, const Gradients& exact, int64_t samples);

}  // namespace tenon_tests

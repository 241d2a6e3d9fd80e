// Parts of check_layer: how large the rounding errors of a number may be.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/support/layer_bench.h"

namespace tenon_tests {

using namespace tenon;

// What errors of rounding are relative to: the size of a number or, where what it is made of cancels, the size of that.
// It is measured: everything that is given is moved by a small share of itself, and how far the number moves, for each
// share, is how much of an error its inputs alone may have brought. The most of a few draws counts.

// Of each number that a formula makes.
[[nodiscard]] std::vector<double> scales_of(const Bench& bench, const Formula& formula,
                                            const FormulaArguments& arguments);
// Of each number of an output, what the case says that its layer rounds included.
[[nodiscard]] std::vector<double> output_scales(const Bench& bench, size_t output, const FormulaArguments& arguments);

using Gradients = std::map<std::string, std::vector<double>>;  // by parameter

// Of one minibatch, by a machine of its own.
[[nodiscard]] Gradients gradients_of(const Bench& bench, tn_dtype compute, int64_t samples);
// Of each number of a gradient, which an fp64 machine on moved numbers gives. `exact` are those of `bench`.
[[nodiscard]] Gradients gradient_scales(const Bench& bench, const Gradients& exact, int64_t samples);

}  // namespace tenon_tests

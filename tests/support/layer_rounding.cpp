// SPDX-License-Identifier: Apache-2.0
#include "tests/support/layer_rounding.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace tenon_tests {

using namespace tenon;

namespace {

constexpr int kDraws = 3;
constexpr uint64_t kSeed = 5;

// Raises the scales to those of a draw. Scales that are not finite are ignored.
void take_most(Numbers& scales, const Numbers& exact, const Numbers& moved, double share) {
  for (size_t i = 0; i < scales.size() && i < moved.size(); ++i)
    if (const double scale = std::abs(moved[i] - exact[i]) / share; std::isfinite(scale))
      scales[i] = std::max(scales[i], scale);
}

Numbers sizes(Numbers values) {
  for (double& value : values) value = std::abs(value);
  return values;
}

}  // namespace

Numbers scales_of(const Bench& bench, const Formula& formula, const FormulaArguments& arguments) {
  constexpr double kShare = 1e-7;  // of fp64 numbers
  const Numbers exact = formula(arguments);
  Numbers scales = sizes(exact);
  std::mt19937_64 random(kSeed);
  for (int draw = 0; draw < kDraws; ++draw)
    take_most(scales, exact, formula(bench.moved(arguments, kShare, random)), kShare);
  return scales;
}

Numbers output_scales(const Bench& bench, size_t output, const FormulaArguments& arguments) {
  Numbers scales = scales_of(bench, bench.formula(output), arguments);
  if (output > 0 || !bench.checked().rounded) return scales;
  const Numbers rounded = sizes(bench.checked().rounded(arguments));
  std::transform(scales.begin(), scales.end(), rounded.begin(), scales.begin(),
                 [](double a, double b) { return std::max(a, b); });
  return scales;
}

Gradients gradients_of(const Bench& bench, tn_dtype compute, int64_t samples) {
  const Machine machine = bench.machine(compute);
  bench.forward(machine, compute, samples);
  bench.backward(machine, compute);
  Gradients result;
  for (const std::string& name : bench.trained()) result[name] = bench.gradient(machine, name);
  return result;
}

Gradients gradient_scales(const Bench& bench, const Gradients& exact, int64_t samples) {
  constexpr double kShare = 0x1p-10;  // of numbers that are stored in fp32
  Gradients scales;
  const double rounded = bench.checked().gradient_rounded / static_cast<double>(samples);
  for (const auto& [name, values] : exact) {
    scales[name] = sizes(values);
    for (double& scale : scales[name]) scale = std::max(scale, rounded);
  }
  Bench other(bench.checked(), 1, bench.samples(), bench.lengths(), bench.draw());
  std::mt19937_64 random(kSeed);
  for (int draw = 0; draw < kDraws; ++draw) {
    other.move_from(bench, kShare, random);
    for (const auto& [name, moved] : gradients_of(other, TN_F64, samples))
      take_most(scales[name], exact.at(name), moved, kShare);
  }
  return scales;
}

}  // namespace tenon_tests

// SPDX-License-Identifier: Apache-2.0
#include "tests/support/layer_numbers_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/support/layer_rounding.h"

namespace tenon_tests {

using namespace tenon;

namespace {

constexpr double kLargestCost = 1e30;  // larger sums overflow in fp32

const char* name_of(check::Draw draw) {
  switch (draw) {
    case check::Draw::kDrawn:
      return "drawn";
    case check::Draw::kZeros:
      return "zeros";
    case check::Draw::kEqual:
      return "equal";
    case check::Draw::kTies:
      return "ties";
    case check::Draw::kTiny:
      return "tiny";
    case check::Draw::kHuge:
      return "huge";
  }
  return "";
}

// Compares the gradient with the slopes of the objective on both sides of some elements, of each alone and of all
// together.
class SlopeCheck {
 public:
  SlopeCheck(const LayerCase& layer, const Bench& bench, const Gradients& gradients, int64_t samples)
      : case_(layer), bench_(bench), gradients_(gradients), arguments_(bench.arguments(samples)) {}

  int64_t run() {
    for (size_t i = 0; i < case_.inputs.size(); ++i)
      if (bench_.is_variable(i) && case_.inputs[i].low < 0) check(Bench::input_parameter(i), arguments_.inputs[i]);
    for (const std::string& suffix : bench_.suffixes()) check(Bench::own(suffix), arguments_.parameters[suffix]);
    return checks_;
  }

 private:
  void check(const std::string& parameter, Numbers& values) {
    constexpr size_t kElements = 12;
    const Numbers& gradient = gradients_.at(parameter);
    for (size_t i = 0; i < values.size(); i += values.size() / kElements + 1)
      check(parameter + "[" + std::to_string(i) + "]", values, i, i + 1, gradient[i]);
    check(parameter, values, 0, values.size(), std::accumulate(gradient.begin(), gradient.end(), 0.0));
  }
  void check(const std::string& what, Numbers& values, size_t begin, size_t end, double gradient) {
    constexpr double kStep = 1e-6, kTolerance = 1e-4;
    const Numbers kept = values;
    const auto moved = [&](double by) {
      for (size_t i = begin; i < end; ++i) values[i] = kept[i] + by;
      return bench_.objective(arguments_);
    };
    const double left = (cost_ - moved(-kStep)) / kStep, right = (moved(kStep) - cost_) / kStep;
    values = kept;
    const double room = kTolerance * std::max({1.0, std::abs(left), std::abs(right)});
    EXPECT_TRUE(gradient >= std::min(left, right) - room && gradient <= std::max(left, right) + room)
        << case_.type << " of " << name_of(bench_.draw()) << ": gradient " << gradient << " of " << what << ", slopes "
        << left << " and " << right;
    ++checks_;
  }

  const LayerCase& case_;
  const Bench& bench_;
  const Gradients& gradients_;
  FormulaArguments arguments_;
  double cost_ = bench_.objective(arguments_);
  int64_t checks_ = 0;
};

// Checks gradients whose objective is in the range of fp32.
int64_t check_gradients(const LayerCase& layer, const Bench& bench, int64_t samples) {
  const Gradients wide = gradients_of(bench, TN_F64, samples), narrow = gradients_of(bench, TN_F32, samples);
  const Gradients scales = gradient_scales(bench, wide, samples);
  int64_t checks = 0;
  for (const auto& [parameter, values] : wide) {
    EXPECT_TRUE(std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); }))
        << layer.type << " of " << name_of(bench.draw()) << ": gradient of " << parameter << " is not finite";
    EXPECT_TRUE(agree(narrow.at(parameter), values, layer.gradient_tolerance, scales.at(parameter)))
        << layer.type << " of " << name_of(bench.draw()) << ": fp32 " << parameter;
    checks += 2;
  }
  const bool kinks = bench.draw() == check::Draw::kZeros || bench.draw() == check::Draw::kTies;
  return checks + (kinks && !layer.jumps ? SlopeCheck(layer, bench, wide, samples).run() : 0);
}

}  // namespace

int64_t check_forward(const LayerCase& layer, const Bench& bench, int64_t samples) {
  int64_t checks = 0;
  for (const bool training : {true, false}) {
    const FormulaArguments arguments = bench.arguments(samples, training);
    std::vector<Numbers> expected, scales;
    for (size_t k = 0; k < bench.outputs_count(); ++k) {
      expected.push_back(bench.formula(k)(arguments));
      scales.push_back(output_scales(bench, k, arguments));
    }
    const double cost = bench.objective(arguments);
    for (const auto& [compute, tolerance] : {std::pair{TN_F64, 1e-12}, std::pair{TN_F32, layer.tolerance}}) {
      const Machine machine = bench.machine(compute, training);
      for (int repeat = bench.draw() == check::Draw::kDrawn ? 0 : 1; repeat < 2; ++repeat) {
        bench.forward(machine, compute, samples);
        for (size_t k = 0; k < bench.outputs_count(); ++k, ++checks)
          EXPECT_TRUE(agree(numbers_of(machine.output(bench.output(k))), expected[k], tolerance, scales[k]))
              << layer.type << " of " << name_of(bench.draw()) << ": output " << k
              << (training ? " in training, " : ", ") << (compute == TN_F64 ? "fp64" : "fp32") << ", samples "
              << samples;
        if (!layer.cost || !(std::abs(cost) < kLargestCost)) continue;
        EXPECT_NEAR(machine.cost(), cost, 1e-4 * std::max(1.0, std::abs(machine.cost()))) << layer.type;
        ++checks;
      }
    }
  }
  return checks;
}

int64_t check_numbers(const LayerCase& layer, int64_t samples) {
  int64_t checks = 0;
  if (std::all_of(layer.inputs.begin(), layer.inputs.end(),
                  [](const CheckedInput& input) { return input.integers_below > 0; }))
    return 0;
  for (const check::Draw draw : {check::Draw::kZeros, check::Draw::kTies, check::Draw::kTiny, check::Draw::kHuge}) {
    const Bench bench(layer, 2, samples, Lengths::kDrawn, draw);
    checks += check_forward(layer, bench, samples);
    if (std::abs(bench.objective(bench.arguments(samples))) < kLargestCost)
      checks += check_gradients(layer, bench, samples);
  }
  return checks;
}

}  // namespace tenon_tests

// SPDX-License-Identifier: Apache-2.0
#include "tests/support/layer_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <vector>

#include "tests/support/layer_bench.h"
#include "tests/support/layer_numbers_check.h"
#include "tests/support/layer_rounding.h"
#include "tests/support/layer_state_check.h"
#include "tests/support/sanitized.h"

namespace tenon_tests {

using namespace tenon;

namespace {

// Central differences of the objective by every `stride`th element of `values`, which are part of `arguments`.
Numbers finite_differences(const Bench& bench, FormulaArguments& arguments, Numbers& values, size_t stride = 1) {
  Numbers result(values.size());
  for (size_t i = 0; i < values.size(); i += stride) {
    const double kept = values[i];
    const double step = 1e-5 * std::max(1.0, std::abs(kept));
    values[i] = kept + step;
    const double above = bench.objective(arguments);
    values[i] = kept - step;
    const double below = bench.objective(arguments);
    values[i] = kept;
    result[i] = (above - below) / (2 * step);
  }
  return result;
}

constexpr double kGradientTolerance = 1e-6;  // fp64 against central differences

// The scale of the errors of central differences: that of the objective, which they subtract.
Numbers scales_of_differences(const Bench& bench, const FormulaArguments& arguments) {
  return {1e-3 * std::max(1.0, std::abs(bench.objective(arguments)))};
}

// Checks that the comparison that accepts a gradient rejects every mutant of it.
int64_t check_mutants(const Numbers& gradient, const Numbers& expected, const Numbers& scales, const Numbers& twice,
                      const std::string& name) {
  double largest = 0;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  if (largest < 1e-4) return 0;  // a gradient that is zero has no mutants
  const auto caught = [&](Numbers mutant, const char* what) {
    EXPECT_FALSE(agree(mutant, expected, kGradientTolerance, scales))
        << name << ": mutant \"" << what << "\" was not found";
  };
  Numbers mutant = gradient;
  for (double& value : mutant) value *= 1.001;
  caught(mutant, "times 1.001");
  mutant = gradient;
  mutant[mutant.size() / 2] += 1e-3 * largest;
  caught(mutant, "one element");
  mutant = gradient;
  const double little = 10 * kGradientTolerance * std::max(scales[0], 0.01 * largest);
  for (double& value : mutant)
    if (std::abs(value) < 0.01 * largest) value += little;
  const bool small = mutant != gradient;
  if (small) caught(mutant, "small elements");
  mutant = gradient;
  for (double& value : mutant) value = -value;
  caught(mutant, "sign");
  caught(twice, "added instead of written");
  return small ? 5 : 4;
}

int64_t check_gradients(const LayerCase& layer, const Bench& bench, int64_t samples, const Gradients& wide,
                        const Gradients& scales) {
  FormulaArguments arguments = bench.arguments(samples);
  const Gradients narrow = gradients_of(bench, TN_F32, samples);
  const Machine machine = bench.machine(TN_F64);
  for (int times = 0; times < 2; ++times) {  // the second backward adds, which doubles the gradients
    bench.forward(machine, TN_F64, samples);
    bench.backward(machine, TN_F64);
  }
  const Numbers of_differences = scales_of_differences(bench, arguments);
  int64_t checks = 0;
  const auto check = [&](const std::string& parameter, Numbers& values) {
    const Numbers& gradient = wide.at(parameter);
    const Numbers expected = finite_differences(bench, arguments, values);
    EXPECT_TRUE(agree(gradient, expected, kGradientTolerance, of_differences))
        << layer.type << ": gradient of " << parameter;
    EXPECT_TRUE(agree(narrow.at(parameter), gradient, layer.gradient_tolerance, scales.at(parameter)))
        << layer.type << ": fp32 " << parameter;
    const Numbers twice = bench.gradient(machine, parameter);
    Numbers doubled = gradient;
    for (double& value : doubled) value *= 2;
    EXPECT_TRUE(agree(twice, doubled, 1e-12, scales.at(parameter))) << layer.type << ": accumulation of " << parameter;
    checks += 3 + check_mutants(gradient, expected, of_differences, twice, layer.type + " " + parameter);
  };
  for (size_t i = 0; i < layer.inputs.size(); ++i) {
    if (!bench.is_variable(i)) continue;
    check(Bench::input_parameter(i), arguments.inputs[i]);
  }
  for (const std::string& suffix : bench.suffixes()) check(Bench::own(suffix), arguments.parameters[suffix]);
  return checks;
}

// Checks that each gradient is the same if it is computed alone, with the other parameters frozen.
int64_t check_requests(const LayerCase& layer, const Bench& bench, int64_t samples, const Gradients& all,
                       const Gradients& scales) {
  const std::vector<std::string> names = bench.trained();
  if (names.size() < 2) return 0;
  for (const std::string& name : names) {
    std::vector<std::string> others = names;
    std::erase(others, name);
    const Machine one = bench.machine(TN_F64, true, others);
    bench.forward(one, TN_F64, samples);
    bench.backward(one, TN_F64);
    EXPECT_TRUE(agree(bench.gradient(one, name), all.at(name), 1e-12, scales.at(name)))
        << layer.type << ": gradient of " << name << " alone";
  }
  return static_cast<int64_t>(names.size());
}

// Checks that an empty minibatch has the cost 0, if it has one, and that with one sample less than the machine allows
// the outputs are those of the formula and, unless the layer couples samples, have the same bits as before.
int64_t check_smaller(const LayerCase& layer, const Bench& bench, int64_t samples) {
  const Machine machine = bench.machine(TN_F64);
  bench.forward(machine, TN_F64, 0);
  bench.backward(machine, TN_F64);
  if (layer.cost) {
    EXPECT_EQ(machine.cost(), 0.0) << layer.type;
  }
  EXPECT_EQ(machine.output(bench.output(0)).shape[0], 0) << layer.type;
  if (samples < 2) return 2;
  bench.forward(machine, TN_F64, samples);
  const Numbers whole = numbers_of(machine.output(bench.output(0)));
  bench.forward(machine, TN_F64, samples - 1);
  const Numbers part = numbers_of(machine.output(bench.output(0)));
  const FormulaArguments arguments = bench.arguments(samples - 1);
  EXPECT_TRUE(agree(part, layer.formula(arguments), 1e-12, output_scales(bench, 0, arguments)))
      << layer.type << ": one sample less";
  if (layer.couples_samples) return 3;
  EXPECT_LE(part.size() + (bench.has_sequences() ? 0 : 1), whole.size()) << layer.type;
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin())) << layer.type << ": one sample less changes others";
  return 5;
}

// Checks samples whose sequences are all empty.
int64_t check_empty(const LayerCase& layer, const Bench& bench, int64_t samples) {
  if (!bench.has_sequences()) return 0;
  const Machine machine = bench.machine(TN_F64);
  FormulaArguments arguments = bench.arguments(samples, true, true);
  bench.forward(machine, TN_F64, samples);  // leaves other values in memory
  bench.forward(machine, TN_F64, samples, true);
  for (size_t k = 0; k < bench.outputs_count(); ++k)
    EXPECT_TRUE(agree(numbers_of(machine.output(bench.output(k))), bench.formula(k)(arguments), 1e-12,
                      output_scales(bench, k, arguments)))
        << layer.type << ": output " << k << " of empty sequences";
  if (layer.cost) {
    EXPECT_NEAR(machine.cost(), bench.objective(arguments), 1e-9) << layer.type;
  }
  bench.backward(machine, TN_F64);
  int64_t checks = 2;
  const auto check = [&](const std::string& parameter, Numbers& values) {
    Numbers expected = finite_differences(bench, arguments, values);
    const Numbers gradient = bench.gradient(machine, parameter);
    expected.resize(gradient.size());  // rows outside of all sequences have gradient 0
    EXPECT_TRUE(agree(gradient, expected, kGradientTolerance, scales_of_differences(bench, arguments)))
        << layer.type << ": " << parameter << " without rows";
    ++checks;
  };
  for (size_t i = 0; i < layer.inputs.size(); ++i)
    if (bench.is_variable(i)) check(Bench::input_parameter(i), arguments.inputs[i]);
  for (const std::string& suffix : bench.suffixes()) check(Bench::own(suffix), arguments.parameters[suffix]);
  return checks;
}

// Checks that every number of threads gives the same bits.
int64_t check_threads(const LayerCase& layer, int64_t samples, Lengths lengths) {
  const auto bits = [&](int threads) {
    const Bench bench(layer, threads, samples, lengths);
    return bits_of_a_step(bench, bench.machine(TN_F32), bench.outputs(), samples);
  };
  const Numbers one = bits(1);
  const std::vector<int> counts = sanitized() ? std::vector{3} : std::vector{2, 3, 8};
  for (const int threads : counts)
    EXPECT_TRUE(identical(bits(threads), one)) << layer.type << ": " << threads << " threads give other bits than one";
  return static_cast<int64_t>(counts.size());
}

// Checks some elements of every gradient, in fp64.
int64_t check_sample_of_gradients(const LayerCase& layer, const Bench& bench, int64_t samples) {
  FormulaArguments arguments = bench.arguments(samples);
  const Machine machine = bench.machine(TN_F64);
  bench.forward(machine, TN_F64, samples);
  bench.backward(machine, TN_F64);
  int64_t checks = 0;
  const auto check = [&](const std::string& parameter, Numbers& values) {
    constexpr size_t kElements = 12;
    const size_t stride = values.size() / kElements + 1;
    Numbers gradient = bench.gradient(machine, parameter);
    for (size_t i = 0; i < gradient.size(); ++i)
      if (i % stride != 0) gradient[i] = 0;  // not compared
    EXPECT_TRUE(agree(gradient, finite_differences(bench, arguments, values, stride), 1e-5,
                      scales_of_differences(bench, arguments)))
        << layer.type << ": gradient of " << parameter;
    ++checks;
  };
  for (size_t i = 0; i < layer.inputs.size(); ++i)
    if (bench.is_variable(i)) check(Bench::input_parameter(i), arguments.inputs[i]);
  for (const std::string& suffix : bench.suffixes()) check(Bench::own(suffix), arguments.parameters[suffix]);
  return checks;
}

int64_t reported(const LayerCase& layer, int64_t checks) {
  static std::atomic<int64_t> total{0};
  total += checks;
  testing::Test::RecordProperty("checks_" + layer.type, std::to_string(checks));
  std::printf("[  CHECKS  ] %s: %lld (%lld so far)\n", layer.type.c_str(), static_cast<long long>(checks),
              static_cast<long long>(total));
  return checks;
}

}  // namespace

LayerCase on_rows(LayerCase layer, uint32_t levels) {
  for (CheckedInput& input : layer.inputs) input.sequence = "rows", input.levels = levels;
  layer.output_rows = !layer.cost;
  for (Formula* formula : {&layer.formula, &layer.rounded})
    if (*formula)
      *formula = [of_samples = std::move(*formula)](const FormulaArguments& arguments) {
        FormulaArguments rows = arguments;
        rows.samples = arguments.offsets[0].back().back();
        return of_samples(rows);
      };
  return layer;
}

int64_t check_layer(const LayerCase& layer) {
  int64_t checks = 0;
  // Sanitizers, which take ten times as long, watch the smallest and the largest minibatch.
  std::vector<int64_t> sizes = layer.samples;
  if (sanitized() && sizes.size() > 2) sizes = {sizes.front(), sizes.back()};
  for (const int64_t samples : sizes) {
    const Bench bench(layer, 2, samples);
    checks += check_forward(layer, bench, samples);
    const Gradients gradients = gradients_of(bench, TN_F64, samples);
    const Gradients scales = gradient_scales(bench, gradients, samples);
    // Every element of large minibatches is compared without sanitizers, which watch the same code on fewer ones.
    checks += samples > 2 && sanitized() ? check_sample_of_gradients(layer, bench, samples)
                                         : check_gradients(layer, bench, samples, gradients, scales);
    checks += check_requests(layer, bench, samples, gradients, scales);
    checks += check_smaller(layer, bench, samples);
    checks += check_empty(layer, bench, samples);
    checks += check_buffers(layer, samples);
  }
  const int64_t samples = layer.samples.back();
  checks += check_threads(layer, samples, Lengths::kDrawn);
  checks += check_numbers(layer, layer.samples[layer.samples.size() / 2]);
  return reported(layer, checks + check_file(layer, samples));
}

int64_t check_long_sequences(const LayerCase& layer) {
  LayerCase loose = layer;  // sums of 10,000 numbers
  loose.tolerance = 1e-4;
  int64_t checks = 0;
  for (const auto& [lengths, samples] :
       {std::pair{Lengths::kManyShort, DrawnSequences::kLong}, std::pair{Lengths::kOneLong, int64_t{3}}}) {
    const Bench bench(loose, 2, samples, lengths);
    checks += check_forward(loose, bench, samples);
    checks += check_sample_of_gradients(loose, bench, samples);
    checks += check_threads(loose, samples, lengths);
  }
  return reported(loose, checks);
}

}  // namespace tenon_tests

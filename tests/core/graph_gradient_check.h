// Graphs with their inputs, whose gradients are compared with finite differences by a plain fp64 interpreter.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "core/graph/passes/passes.h"
#include "tests/support/graphs/graph_interpreter.h"
#include "tests/support/symbols.h"

namespace tenon_tests {

using namespace tenon::core;

inline constexpr int64_t kSamples = 3;
inline constexpr int64_t kRows = 5;  // of all sequences
inline const std::vector<int64_t> kSymbols = symbol_values({0, kSamples, kRows});

inline int64_t count_of(const Shape& shape) { return tenon_tests::count_of(shape, kSymbols); }

inline Spec f64(const Shape& shape) { return {TN_F64, shape, TN_DENSE, 0, {}}; }
inline Dim fixed(int64_t n) { return tn_dim_constant(n); }
inline Dim samples() { return tn_dim_symbol(TN_SYMBOL_SAMPLES); }

struct Built {
  Graph graph;
  std::vector<ValueId> inputs;  // floats from outside
  ValueId ids = kNoValue;       // integers from outside, below 3
  ValueId row_ids = kNoValue;   // the same, one for each row
  ValueId offsets = kNoValue;   // of the sequences, one of them empty
  ValueId output = kNoValue;
  std::set<ValueId> row_sparse;  // inputs with row-sparse gradients

  // Returns the ragged dimension; the first call adds its offsets.
  Dim rows() {
    constexpr int32_t kSymbol = TN_SYMBOL_FIRST_RAGGED;
    if (offsets == kNoValue) {
      Dim ends = tn_dim_symbol(TN_SYMBOL_SAMPLES);
      ends.offset = 1;
      offsets = graph.add_external({TN_I64, {ends}, TN_DENSE, 0, {}}, "offsets");
      graph.rows[kSymbol] = {tn_dim_symbol(TN_SYMBOL_SAMPLES), offsets};
    }
    return tn_dim_symbol(kSymbol);
  }
};

inline std::vector<std::vector<double>> fill(const Built& built) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> draw(0.3, 1.5);
  std::vector<std::vector<double>> values(built.graph.values.size());
  for (const ValueId input : built.inputs) {
    std::vector<double>& value = values[static_cast<size_t>(input)];
    value.resize(static_cast<size_t>(count_of(built.graph.spec(input).shape)));
    for (double& x : value) x = draw(random);
  }
  if (built.ids != kNoValue) values[static_cast<size_t>(built.ids)] = {2, 0, 2};
  if (built.row_ids != kNoValue) values[static_cast<size_t>(built.row_ids)] = {1, 0, 1, 2, 1};
  if (built.offsets != kNoValue) values[static_cast<size_t>(built.offsets)] = {0, 2, 2, 5};
  return values;
}

// Returns the weighted sum of the output.
inline double run(const Built& built, const std::vector<std::vector<double>>& inputs,
                  const std::vector<double>& weights) {
  Interpreter interpreter(built.graph, kSymbols);
  std::copy(inputs.begin(), inputs.end(), interpreter.values.begin());
  interpreter.run();
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i)
    sum += weights[i] * interpreter.values[static_cast<size_t>(built.output)][i];
  return sum;
}

inline void check(Built built) {
  built.graph.layers = {"layer"};
  const std::vector<std::vector<double>> inputs = fill(built);
  std::vector<double> weights(static_cast<size_t>(count_of(built.graph.spec(built.output).shape)));
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = 0.5 + 0.1 * static_cast<double>(i % 7);

  Graph graph = built.graph;
  const ValueId seed = graph.add_external(graph.spec(built.output), "seed");
  const auto gradients = differentiate(graph, {{built.output, seed}}, built.inputs, TN_F64, built.row_sparse);
  const auto derive = [&](const Graph& of) {
    Interpreter interpreter(of, kSymbols);
    std::copy(inputs.begin(), inputs.end(), interpreter.values.begin());
    interpreter.values[static_cast<size_t>(seed)] = weights;
    interpreter.run();
    return interpreter.values;
  };
  const auto derived = derive(graph);

  Graph joined = graph;
  std::vector<ValueId> kept{built.output};
  for (const auto& [value, gradient] : gradients) kept.push_back(gradient);
  fuse(joined, kept);
  EXPECT_LE(joined.nodes.size(), graph.nodes.size());
  const auto after = derive(joined);
  for (const ValueId value : kept)
    EXPECT_EQ(derived[static_cast<size_t>(value)], after[static_cast<size_t>(value)])
        << "fusion changed value " << value;

  for (const ValueId input : built.inputs) {
    const ValueId gradient = gradients.at(input);
    ASSERT_NE(gradient, kNoValue);
    auto moved = inputs;
    std::vector<double>& value = moved[static_cast<size_t>(input)];
    const std::vector<double>& got = derived[static_cast<size_t>(gradient)];
    ASSERT_EQ(got.size(), value.size());
    for (size_t i = 0; i < value.size(); ++i) {
      constexpr double kStep = 1e-6;
      const double centre = value[i];
      value[i] = centre + kStep;
      const double above = run(built, moved, weights);
      value[i] = centre - kStep;
      const double below = run(built, moved, weights);
      value[i] = centre;
      EXPECT_NEAR(got[i], (above - below) / (2 * kStep), 1e-7 * std::max(1.0, std::abs(got[i]))) << "element " << i;
    }
  }
}

}  // namespace tenon_tests

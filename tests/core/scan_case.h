// A scan over sequences as a graph, and the checks of its gradients and of what the passes make of it, by a plain fp64
// interpreter. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/loops.h"
#include "core/graph/passes/passes.h"
#include "tests/support/graphs/graph_interpreter.h"
#include "tests/support/symbols.h"

namespace tenon_tests {

using namespace tenon::core;

constexpr int32_t kRows = TN_SYMBOL_FIRST_RAGGED;
constexpr int64_t kIn = 2, kSize = 3;

inline Dim fixed(int64_t n) { return tn_dim_constant(n); }
inline Spec f64(const Shape& shape) { return {TN_F64, shape, TN_DENSE, 0, {}}; }

// A graph with sequences of some lengths, and a scan over them.
class ScanCase {
 public:
  explicit ScanCase(std::vector<int64_t> lengths, bool reverse = false) : lengths_(std::move(lengths)) {
    graph.layers = {"layer"};
    graph.compute = TN_F64;
    Dim ends = samples();
    ends.offset = 1;
    offsets_ = graph.add_external({TN_I64, {ends}, TN_DENSE, 0, {}}, "offsets");
    graph.rows[kRows] = {samples(), offsets_};
    order = write.step_order(rows(), reverse, false, kRows + 1);
    graph.loops.push_back({order, false});
  }
  static Dim samples() { return tn_dim_symbol(TN_SYMBOL_SAMPLES); }
  static Dim rows() { return tn_dim_symbol(kRows); }

  ValueId input(const Shape& shape) { return inputs.emplace_back(graph.add_external(f64(shape), "input")); }
  ValueId apply(uint16_t op, ValueId a) {
    ProgramWriter program;
    program.output(program.apply(op, program.input(TN_FULL)));
    return write.pointwise(std::make_shared<Program>(program.finish()), {a}, 1)[0];
  }
  ValueId apply(uint16_t op, ValueId a, ValueId b, uint8_t extent = TN_FULL) {
    ProgramWriter program;
    const int32_t x = program.input(TN_FULL), y = program.input(extent);
    program.output(program.apply(op, x, program.expand(y, TN_FULL)));
    return write.pointwise(std::make_shared<Program>(program.finish()), {a, b}, 1)[0];
  }
  ValueId memory(ValueId initial = kNoValue) { return write.memory(0, f64({fixed(kSize)}), initial); }

  [[nodiscard]] std::vector<int64_t> symbols() const {
    const int64_t all = std::accumulate(lengths_.begin(), lengths_.end(), int64_t{0});
    const auto count = static_cast<int64_t>(lengths_.size());
    std::vector<int64_t> values = symbol_values({0, count, all, all, all + count});
    for (const auto& [symbol, size] : sizes) {
      values.resize(std::max(values.size(), static_cast<size_t>(symbol) + 1));
      values[static_cast<size_t>(symbol)] = size;
    }
    return values;
  }
  [[nodiscard]] std::vector<Numbers> fill() const {
    std::mt19937_64 random(5);
    std::uniform_real_distribution<double> draw(-0.8, 0.8);
    std::vector<Numbers> values(graph.values.size());
    for (const ValueId input : inputs) {
      Numbers& value = values[static_cast<size_t>(input)];
      value.resize(static_cast<size_t>(count_of(graph.spec(input).shape, symbols())));
      for (double& x : value) x = draw(random);
    }
    Numbers& offsets = values[static_cast<size_t>(offsets_)] = {0};
    for (const int64_t length : lengths_) offsets.push_back(offsets.back() + static_cast<double>(length));
    for (const auto& [value, numbers] : given) values[static_cast<size_t>(value)] = numbers;
    return values;
  }

  Graph graph;
  GraphWriter write{graph, 0, false, TN_F64};
  int32_t order = -1;
  std::vector<ValueId> inputs, outputs;
  std::map<int32_t, int64_t> sizes;  // of further symbols
  std::map<ValueId, Numbers> given;  // further values from outside

 private:
  std::vector<int64_t> lengths_;
  ValueId offsets_ = kNoValue;
};

inline std::vector<Numbers> run(const Graph& graph, const std::vector<int64_t>& symbols,
                                const std::vector<Numbers>& inputs) {
  Interpreter interpreter(graph, symbols);
  std::copy(inputs.begin(), inputs.end(), interpreter.values.begin());
  interpreter.run();
  return std::move(interpreter.values);
}

inline double weight(size_t i) { return 0.5 + 0.1 * static_cast<double>(i % 7); }

inline double weighted(const ScanCase& of, const std::vector<Numbers>& inputs) {
  const std::vector<Numbers> values = run(of.graph, of.symbols(), inputs);
  double sum = 0;
  for (const ValueId output : of.outputs)
    for (size_t i = 0; i < values[static_cast<size_t>(output)].size(); ++i)
      sum += weight(i) * values[static_cast<size_t>(output)][i];
  return sum;
}

// Checks the gradients of all inputs, and that arrangement, fusion and epilogues change no value. Returns the graph
// after them.
inline Graph check(const ScanCase& of) {
  std::vector<Numbers> inputs = of.fill();
  Graph graph = of.graph;
  EXPECT_EQ(end_loop(graph, 0).reason, "");
  std::vector<GradientSeed> seeds;
  for (const ValueId output : of.outputs) {
    seeds.push_back({output, graph.add_external(graph.spec(output), "seed")});
    Numbers weights(static_cast<size_t>(count_of(graph.spec(output).shape, of.symbols())));
    for (size_t i = 0; i < weights.size(); ++i) weights[i] = weight(i);
    inputs.push_back(std::move(weights));
  }
  const auto gradients = differentiate(graph, seeds, of.inputs, TN_F64);
  const std::vector<Numbers> derived = run(graph, of.symbols(), inputs);

  std::vector<ValueId> kept = of.outputs;
  for (const auto& [value, gradient] : gradients)
    if (gradient != kNoValue) kept.push_back(gradient);
  Graph arranged = graph;
  arrange_loops(arranged);
  const auto compare = [&](const char* after) {
    const std::vector<Numbers> values = run(arranged, of.symbols(), inputs);
    for (const ValueId value : kept)
      EXPECT_EQ(derived[static_cast<size_t>(value)], values[static_cast<size_t>(value)])
          << after << ", value " << value;
  };
  compare("arranged");
  fuse(arranged, kept);
  compare("fused");
  attach_epilogues(arranged, [](const Node&) { return true; });
  compare("with epilogues");

  inputs.resize(of.graph.values.size());
  for (const ValueId input : of.inputs) {
    const ValueId gradient = gradients.at(input);
    if (gradient == kNoValue) {
      ADD_FAILURE() << "no gradient of input " << input;
      continue;
    }
    Numbers& value = inputs[static_cast<size_t>(input)];
    const Numbers& got = derived[static_cast<size_t>(gradient)];
    EXPECT_EQ(got.size(), value.size());
    for (size_t i = 0; i < value.size() && i < got.size(); ++i) {
      constexpr double kStep = 1e-6;
      const double centre = value[i];
      value[i] = centre + kStep;
      const double above = weighted(of, inputs);
      value[i] = centre - kStep;
      const double below = weighted(of, inputs);
      value[i] = centre;
      EXPECT_NEAR(got[i], (above - below) / (2 * kStep), 1e-7 * std::max(1.0, std::abs(got[i]))) << "element " << i;
    }
  }
  return arranged;
}

// Returns the number of nodes of one operation in forward loops, or in backward loops.
inline size_t nodes_in_loops(const Graph& graph, bool backward, const char* name) {
  return static_cast<size_t>(std::count_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    return node.loop >= 0 && node.backward == backward && primitive_name(node.operation) == std::string(name);
  }));
}

}  // namespace tenon_tests

// Scans: derivatives against finite differences, and what arrange_loops makes of them, by a plain fp64 interpreter.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <random>

#include "core/error.h"
#include "core/graph/loops.h"
#include "core/graph/passes.h"
#include "tests/support/graphs/graph_interpreter.h"
#include "tests/support/symbols.h"

namespace tenon_tests {

using namespace tenon::core;

namespace {

constexpr int32_t kRows = TN_SYMBOL_FIRST_RAGGED;
constexpr int64_t kIn = 2, kSize = 3;

Dim fixed(int64_t n) { return tn_dim_constant(n); }
Spec f64(const Shape& shape) { return {TN_F64, shape, TN_DENSE, 0, {}}; }

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
    order = write.step_order(rows(), reverse, kRows + 1);
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
    return symbol_values({0, count, all, all, all + count});
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
    return values;
  }

  Graph graph;
  GraphWriter write{graph, 0, false, TN_F64};
  int32_t order = -1;
  std::vector<ValueId> inputs, outputs;

 private:
  std::vector<int64_t> lengths_;
  ValueId offsets_ = kNoValue;
};

std::vector<Numbers> run(const Graph& graph, const std::vector<int64_t>& symbols, const std::vector<Numbers>& inputs) {
  Interpreter interpreter(graph, symbols);
  std::copy(inputs.begin(), inputs.end(), interpreter.values.begin());
  interpreter.run();
  return std::move(interpreter.values);
}

double weight(size_t i) { return 0.5 + 0.1 * static_cast<double>(i % 7); }

double weighted(const ScanCase& of, const std::vector<Numbers>& inputs) {
  const std::vector<Numbers> values = run(of.graph, of.symbols(), inputs);
  double sum = 0;
  for (const ValueId output : of.outputs)
    for (size_t i = 0; i < values[static_cast<size_t>(output)].size(); ++i)
      sum += weight(i) * values[static_cast<size_t>(output)][i];
  return sum;
}

// Checks the gradients of all inputs, and that arrangement, fusion and epilogues change no value. Returns the graph
// after them.
Graph check(const ScanCase& of) {
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

const std::vector<std::vector<int64_t>> kLengths = {{2, 0, 3, 1, 3}, {4}, {1, 1, 1, 1}, {3, 3}, {0, 0}, {1, 2, 5}};

// tanh(x W + h U + b), all steps and the last ones.
ScanCase simple(const std::vector<int64_t>& lengths, bool reverse, bool initial) {
  ScanCase of(lengths, reverse);
  const ValueId x = of.input({ScanCase::rows(), fixed(kIn)}), w = of.input({fixed(kIn), fixed(kSize)}),
                u = of.input({fixed(kSize), fixed(kSize)}), b = of.input({fixed(kSize)});
  const ValueId h = of.memory(initial ? of.input({ScanCase::samples(), fixed(kSize)}) : kNoValue);
  const ValueId sum =
      of.apply(TN_OP_ADD, of.write.gemm(of.write.to_steps(x, of.order), w, 0, 1), of.write.gemm(h, u, 0, 1));
  const ValueId next = of.apply(TN_OP_TANH, of.apply(TN_OP_ADD, sum, b, TN_PER_COLUMN));
  const ValueId last = of.write.end_memory(h, next);
  of.outputs = {of.write.from_steps(next), last};
  return of;
}

TEST(Scan, GradientsOfASimpleRecurrence) {
  for (const std::vector<int64_t>& lengths : kLengths)
    for (const bool reverse : {false, true})
      for (const bool initial : {false, true}) {
        SCOPED_TRACE(::testing::PrintToString(lengths) + (reverse ? " reversed" : "") + (initial ? " initial" : ""));
        check(simple(lengths, reverse, initial));
      }
}

// Two memories of which one is updated with the other, outside values of each sequence, a parameter inside and outside.
TEST(Scan, GradientsOfTwoMemories) {
  for (const std::vector<int64_t>& lengths : kLengths) {
    SCOPED_TRACE(::testing::PrintToString(lengths));
    ScanCase of(lengths);
    const ValueId x = of.input({ScanCase::rows(), fixed(kSize)}), u = of.input({fixed(kSize), fixed(kSize)}),
                  each = of.input({ScanCase::samples(), fixed(kSize)}), peep = of.input({fixed(kSize)}),
                  first = of.input({ScanCase::samples(), fixed(kSize)});
    const ValueId c = of.memory(), h = of.memory(first);
    const ValueId in = of.apply(TN_OP_MUL, of.write.to_steps(x, of.order), of.write.to_steps(each, of.order));
    const ValueId gate = of.apply(
        TN_OP_TANH, of.apply(TN_OP_ADD, of.write.gemm(h, u, 0, 1), of.apply(TN_OP_MUL, c, peep, TN_PER_COLUMN)));
    const ValueId state = of.apply(TN_OP_ADD, of.apply(TN_OP_MUL, c, gate), in);
    const ValueId out = of.apply(TN_OP_TANH, of.write.gemm(state, u, TN_TRANSPOSE_B, 0.5));
    const ValueId last_c = of.write.end_memory(c, state), last_h = of.write.end_memory(h, out);
    of.outputs = {of.write.from_steps(of.apply(TN_OP_MUL, out, gate)), of.write.gemm(last_c, u, 0, 1), last_h};
    check(of);
  }
}

// Memories that nothing reads, that are updated with values of the outside, or that keep their values.
TEST(Scan, GradientsOfMemoriesWithoutARecurrence) {
  for (const std::vector<int64_t>& lengths : kLengths) {
    SCOPED_TRACE(::testing::PrintToString(lengths));
    ScanCase of(lengths);
    const ValueId x = of.input({ScanCase::rows(), fixed(kSize)}), first = of.input({ScanCase::samples(), fixed(kSize)}),
                  second = of.input({ScanCase::samples(), fixed(kSize)});
    const ValueId kept = of.memory(first), delayed = of.memory(second), also = of.memory(), unread = of.memory(first);
    const ValueId in = of.write.to_steps(x, of.order);
    const ValueId sum = of.apply(TN_OP_MUL, of.apply(TN_OP_ADD, kept, delayed), of.apply(TN_OP_ADD, in, also));
    of.write.end_memory(kept, kept);
    of.outputs = {of.write.end_memory(delayed, in), of.write.end_memory(also, in), of.write.end_memory(unread, sum),
                  of.write.from_steps(sum)};
    check(of);
  }
}

// Values of several dimensions: a gate and a candidate cut from one product.
TEST(Scan, GradientsThroughViewsAndSlices) {
  ScanCase of({3, 1, 0, 4});
  const ValueId x = of.input({ScanCase::rows(), fixed(2 * kSize)}), u = of.input({fixed(kSize), fixed(2 * kSize)});
  const ValueId h = of.memory();
  const ValueId steps = of.write.to_steps(x, of.order);
  const Dim first = of.graph.spec(steps).shape[0];
  const ValueId sum =
      of.write.view(of.apply(TN_OP_ADD, steps, of.write.gemm(h, u, 0, 1)), {first, fixed(2), fixed(kSize)});
  const auto part = [&](int64_t i) { return of.write.view(of.write.slice(sum, 1, i, 1), {first, fixed(kSize)}); };
  const ValueId next = of.apply(TN_OP_MUL, of.apply(TN_OP_SIN, part(0)), of.apply(TN_OP_TANH, part(1)));
  of.write.end_memory(h, next);
  of.outputs = {of.write.from_steps(next)};
  check(of);
}

size_t nodes_in_loops(const Graph& graph, bool backward, const char* name) {
  return static_cast<size_t>(std::count_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    return node.loop >= 0 && node.backward == backward && primitive_name(node.operation) == std::string(name);
  }));
}

TEST(Scan, ProductsThatNoMemoryHasAPartInLeaveTheLoop) {
  const Graph graph = check(simple({2, 3}, false, false));
  // x W before the loop, d W and d U behind it; h U and the gradient of h inside.
  EXPECT_EQ(nodes_in_loops(graph, false, "gemm"), 1U);
  EXPECT_EQ(nodes_in_loops(graph, false, "pointwise"), 0U);  // the epilogue of h U
  EXPECT_EQ(nodes_in_loops(graph, true, "gemm"), 1U);
  EXPECT_EQ(nodes_in_loops(graph, true, "pointwise"), 1U);
}

TEST(Scan, RefusesWhatRelatesDifferentSteps) {
  const auto refused = [](const std::function<ValueId(ScanCase&, ValueId)>& next) {
    ScanCase of({2, 3});
    const ValueId h = of.memory();
    of.write.end_memory(h, next(of, h));
    const LoopFault fault = end_loop(of.graph, 0);
    return std::string(fault.operation) + " " + fault.reason;
  };
  const std::string product = refused([](ScanCase& of, ValueId h) {
    const ValueId u = of.input({fixed(kSize), fixed(kSize)});
    return of.write.gemm(h, of.write.gemm(of.write.gemm(h, h, TN_TRANSPOSE_A, 1), u, 0, 1), 0, 1);
  });
  EXPECT_THAT(product, ::testing::HasSubstr("relates different steps"));
  EXPECT_THAT(product, ::testing::HasSubstr("gemm"));
  EXPECT_THAT(refused([](ScanCase& of, ValueId h) { return of.write.to_steps(of.write.from_steps(h), of.order); }),
              ::testing::HasSubstr("gather relates different steps"));
  EXPECT_EQ(refused([](ScanCase& of, ValueId h) { return of.apply(TN_OP_TANH, h); }), " ");
}

TEST(Scan, RefusesValuesOfOtherShapes) {
  ScanCase of({2, 3});
  const ValueId h = of.memory();
  const auto error = [](const std::function<void()>& work) {
    try {
      work();
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const ValueId x = of.input({ScanCase::rows(), fixed(kIn)});
  const ValueId steps = of.write.to_steps(x, of.order);
  EXPECT_THAT(error([&] { of.write.end_memory(h, steps); }),
              ::testing::AllOf(::testing::HasSubstr("a memory of"), ::testing::HasSubstr("is updated with")));
  EXPECT_THAT(error([&] {
                of.write.to_steps(of.input({fixed(4), fixed(kIn)}), of.order);
              }),
              ::testing::HasSubstr("all sequences of a scan have the same lengths"));
  EXPECT_THAT(error([&] { of.write.from_steps(x); }), ::testing::HasSubstr("expected a value of the steps of a scan"));
  EXPECT_THAT(error([&] { of.memory(x); }), ::testing::HasSubstr("the initial value of a memory is"));
}

}  // namespace

}  // namespace tenon_tests

// Scans: derivatives against finite differences, and what arrange_loops makes of them, by a plain fp64 interpreter.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/error.h"
#include "tests/core/scan_case.h"

namespace tenon_tests {

namespace {

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
              ::testing::HasSubstr("gather may relate different steps"));
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

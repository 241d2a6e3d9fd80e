// Scans within the steps of scans: an inner loop that a memory of the outer one leads through. Derivatives against
// finite differences, and what arrange_loops makes of them, by a plain fp64 interpreter.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/core/seen_case.h"

namespace tenon_tests {

namespace {

struct Sizes {
  std::vector<int64_t> lengths, others, parts;  // as of SeenCase
};
const std::vector<Sizes> kSizes = {{{2, 0, 3, 1}, {1, 1, 1, 1}, {2, 0, 1, 3, 1, 2}},
                                   {{1, 1}, {1, 1}, {1, 1}},
                                   {{4}, {1}, {0, 2, 0, 1}},
                                   {{0, 0}, {1, 1}, {}},
                                   {{1, 3, 3}, {1, 1, 1}, {0, 0, 0, 0, 0, 0, 0}}};

// The inner loop begins with the memory h of the outer one and reads it at each step; h is left its last value.
// delayed: a second inner memory has the row before. outside: the next step also reads sums of what the inner one made.
SeenCase hierarchical(const Sizes& sizes, bool reverse, bool inner_reverse, bool more) {
  SeenCase of(sizes.lengths, reverse, sizes.others, sizes.parts);
  const ValueId inner = of.part(kIn), w = of.input({fixed(kIn), fixed(kSize)}),
                u = of.input({fixed(kSize), fixed(kSize)}), v = of.input({fixed(kSize), fixed(kSize)}),
                b = of.input({fixed(kSize)});
  const ValueId h = of.memory(of.input({ScanCase::samples(), fixed(kSize)}));
  const ValueId p = of.see(inner);
  const Dim parts = of.graph.spec(p).shape[0];
  const int32_t order = of.inner(parts, inner_reverse, true);
  const ValueId state = of.write.memory(1, f64({fixed(kSize)}), h);
  const ValueId x = of.write.gemm(of.write.to_steps(p, order), w, 0, 1);
  ValueId sum = of.apply(TN_OP_ADD, x, of.write.gemm(state, u, 0, 1));
  if (more) sum = of.apply(TN_OP_ADD, sum, of.apply(TN_OP_MUL, state, of.write.to_steps(h, order)));
  const ValueId next = of.apply(TN_OP_TANH, of.apply(TN_OP_ADD, sum, b, TN_PER_COLUMN));
  ValueId left = of.write.end_memory(state, next);
  if (more) {
    const ValueId before = of.write.memory(1, f64({fixed(kSize)}), kNoValue);
    const ValueId product = of.apply(TN_OP_MUL, before, next);
    const ValueId last = of.write.end_memory(before, x);
    const ValueId rows = of.write.from_steps(product);
    const ValueId total = of.write.segment(TN_SEGMENT_SUM, rows, parts, 0);
    left = of.apply(TN_OP_ADD, left, of.apply(TN_OP_TANH, of.write.gemm(of.apply(TN_OP_ADD, total, last), v, 0, 1)));
    of.outputs.push_back(of.write.from_steps(rows));
  }
  EXPECT_EQ(end_loop(of.graph, 1).reason, "");
  of.outputs.push_back(of.write.from_steps(of.write.from_steps(next)));
  of.outputs.push_back(of.write.end_memory(h, left));
  if (!more) of.outputs.push_back(of.write.from_steps(of.write.gemm(left, v, 0, 1)));
  return of;
}

TEST(NestedScans, Gradients) {
  for (const Sizes& sizes : kSizes)
    for (const bool reverse : {false, true})
      for (const bool inner_reverse : {false, true})
        for (const bool more : {false, true}) {
          SCOPED_TRACE(::testing::PrintToString(sizes.lengths) + ::testing::PrintToString(sizes.parts) +
                       (reverse ? " reversed" : "") + (inner_reverse ? " inner reversed" : "") + (more ? " more" : ""));
          check(hierarchical(sizes, reverse, inner_reverse, more));
        }
}

// Products of the inputs are computed before both loops, and the gradients of the weights behind both.
TEST(NestedScans, WhatNoMemoryHasAPartInLeavesBothLoops) {
  const Graph graph = check(hierarchical(kSizes[0], false, false, false));
  ASSERT_EQ(graph.loops.size(), 4U);
  for (size_t i = 0; i < graph.loops.size(); ++i)
    EXPECT_EQ(graph.loops[i].around, i % 2 == 0 ? -1 : static_cast<int32_t>(i) - 1) << i;
  for (const bool backward : {false, true}) EXPECT_EQ(nodes_in_loops(graph, backward, "gemm"), 1U) << backward;
  for (const Node& node : graph.nodes) {
    const bool inner = node.loop >= 0 && graph.loops[static_cast<size_t>(node.loop)].around >= 0;
    EXPECT_TRUE(!node.is<Gemm>() || node.loop < 0 || inner);
    EXPECT_FALSE(node.is<ScatterAdd>() && node.loop >= 0);
  }
}

// A nested order may also be that of a loop that leads to no memory of the outer one: it runs behind it, as a whole.
TEST(NestedScans, ALoopThatLeadsToNoMemoryRunsBehindTheOuterOne) {
  for (const Sizes& sizes : kSizes) {
    SeenCase of(sizes.lengths, false, sizes.others, sizes.parts);
    const ValueId u = of.input({fixed(kSize), fixed(kSize)}), h = of.memory(), p = of.see(of.part(kSize));
    const Dim parts = of.graph.spec(p).shape[0];
    const int32_t order = of.inner(parts, false, true);
    const ValueId state = of.write.memory(1, f64({fixed(kSize)}), h);
    const ValueId next =
        of.apply(TN_OP_TANH, of.apply(TN_OP_ADD, of.write.gemm(state, u, 0, 1), of.write.to_steps(p, order)));
    const ValueId last = of.write.end_memory(state, next);
    EXPECT_EQ(end_loop(of.graph, 1).reason, "");
    const ValueId sum = of.write.segment(TN_SEGMENT_SUM, p, parts, 0);
    const ValueId left = of.apply(TN_OP_TANH, of.apply(TN_OP_ADD, of.write.gemm(h, u, 0, 1), sum));
    of.outputs = {of.write.end_memory(h, left), of.write.from_steps(last)};
    const Graph graph = check(of);
    for (const Loop& loop : graph.loops) EXPECT_EQ(loop.around, -1);
  }
}

TEST(NestedScans, StepsOfANestedOrderSeeNoSequences) {
  SeenCase of({2, 1}, false, {1, 1}, {2, 0, 1});
  const ValueId p = of.see(of.part(kSize));
  const int32_t order = of.inner(of.graph.spec(p).shape[0], false, true);
  EXPECT_THROW(static_cast<void>(of.write.to_step_rows(p, order, 90)), Error);
}

}  // namespace

}  // namespace tenon_tests

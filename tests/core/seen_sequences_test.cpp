// Sequences that the steps of scans see: whole ones from outside, and sub-sequences; loops inside of a scan.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/core/seen_case.h"

namespace tenon_tests {

namespace {

// Attention over a sequence outside by what a memory holds, additive for parts and by products for the other sequence.
SeenCase attending(const std::vector<int64_t>& lengths, bool reverse, const std::vector<int64_t>& others,
                   const std::vector<int64_t>& parts) {
  SeenCase of(lengths, reverse, others, parts);
  const ValueId keys = of.other(kSize), values = of.other(kIn), inner = of.part(kSize);
  const ValueId u = of.input({fixed(kSize), fixed(kSize)}), v = of.input({fixed(kIn), fixed(kSize)}),
                score = of.input({fixed(kSize), fixed(1)});
  const ValueId h = of.memory(of.input({ScanCase::samples(), fixed(kSize)}));
  const auto spread = [&](const ValueId each, const ValueId like) {
    return of.write.segment(TN_SEGMENT_BROADCAST, each, of.graph.spec(like).shape[0], 0);
  };
  const auto flat = [&](ValueId value) { return of.write.view(value, {of.graph.spec(value).shape[0]}); };
  const ValueId query = of.write.gemm(h, u, 0, 1);
  const ValueId k = of.see(keys);
  const ValueId additive = of.apply(TN_OP_TANH, of.apply(TN_OP_ADD, k, spread(query, k)));
  const ValueId found = of.attend(flat(of.write.gemm(additive, score, 0, 1)), of.see(values));
  const ValueId p = of.see(inner);
  const ValueId products = of.apply(TN_OP_MUL, p, spread(h, p));
  const ValueId parted = of.attend(flat(of.write.gemm(products, score, 0, 1)), p);
  const ValueId next =
      of.apply(TN_OP_TANH, of.apply(TN_OP_ADD, of.write.gemm(found, v, 0, 1), of.apply(TN_OP_ADD, parted, h)));
  const ValueId last = of.write.end_memory(h, next);
  // What steps computed for the rows of sub-sequences, and a sum over whole sequences that no memory has a part in.
  of.outputs = {of.write.from_steps(next), last, of.write.from_steps(products),
                of.write.from_steps(of.write.segment(TN_SEGMENT_SUM, k, of.graph.spec(k).shape[0], 0))};
  return of;
}

TEST(SeenSequences, GradientsOfAttentionInsideOfAStep) {
  for (const bool reverse : {false, true}) {
    SCOPED_TRACE(reverse);
    check(attending({2, 0, 3, 1}, reverse, {3, 2, 0, 1}, {2, 0, 1, 3, 1, 2}));
    check(attending({1, 1}, reverse, {2, 4}, {1, 1}));
    check(attending({4}, reverse, {3}, {0, 2, 0, 1}));
    check(attending({0, 0}, reverse, {3, 1}, {}));
  }
}

TEST(SeenSequences, StepsSeeTheRowsOfWholeSequencesInPlace) {
  const Graph graph = check(attending({2, 0, 3, 1}, false, {3, 2, 0, 1}, {2, 0, 1, 3, 1, 2}));
  const auto is_in_place = [&](ValueId value) {
    return value != kNoValue && graph.values[static_cast<size_t>(value)].place == StepPlace::kPrefix;
  };
  for (const Node& node : graph.nodes) {
    if (node.loop < 0) continue;
    for (const ValueId input : node.inputs) {
      const int32_t producer = input == kNoValue ? -1 : graph.values[static_cast<size_t>(input)].producer;
      const Node* const made = producer < 0 ? nullptr : &graph.nodes[static_cast<size_t>(producer)];
      if (made == nullptr || !made->is<Gather>() || graph.step_rows[0].place != made->inputs[1]) continue;
      EXPECT_TRUE(is_in_place(input));
    }
  }
  // What the forward loop gave to rows is given to them again in the backward loop.
  for (const Node& node : graph.nodes)
    for (const ValueId input : node.inputs) {
      const int32_t producer = input == kNoValue ? -1 : graph.values[static_cast<size_t>(input)].producer;
      const Node* const maker = producer < 0 ? nullptr : &graph.nodes[static_cast<size_t>(producer)];
      const auto* const segment = maker == nullptr || maker->loop < 0 ? nullptr : maker->as<Segment>();
      if (segment == nullptr || segment->op != TN_SEGMENT_BROADCAST) continue;
      EXPECT_EQ(maker->loop, node.loop);
    }
  // Gradients of whole sequences are summed within the backward loop.
  for (const Node& node : graph.nodes) EXPECT_EQ(node.is<ScatterAdd>(), node.is<ScatterAdd>() && node.loop == 1);
  EXPECT_EQ(nodes_in_loops(graph, true, "scatter_add"), 2U);
  // The keys and values in the order of the steps, and both as the steps of either loop see them.
  EXPECT_EQ(std::count_if(graph.nodes.begin(), graph.nodes.end(),
                          [&](const Node& node) { return is_in_place(node.outputs[0]); }),
            3);
}

// A loop of a body inside that no memory leads to runs once, over all sub-sequences.
TEST(SeenSequences, ALoopInsideRunsOnce) {
  for (const bool reverse : {false, true}) {
    SeenCase of({2, 0, 3, 1}, reverse, {1, 1, 1, 1}, {2, 0, 1, 3, 1, 2});
    const ValueId inner = of.part(kSize), u = of.input({fixed(kSize), fixed(kSize)});
    const ValueId h = of.memory();
    const ValueId p = of.see(inner);
    const Dim parts = of.graph.spec(p).shape[0];
    const int32_t order = of.inner(parts, !reverse, false);
    const ValueId state = of.write.memory(1, f64({fixed(kSize)}), kNoValue);
    const ValueId step =
        of.apply(TN_OP_TANH, of.apply(TN_OP_ADD, of.write.gemm(state, u, 0, 1), of.write.to_steps(p, order)));
    const ValueId summary = of.write.end_memory(state, step);  // one for each step of the scan
    EXPECT_EQ(end_loop(of.graph, 1).reason, "");
    const ValueId next = of.apply(TN_OP_TANH, of.apply(TN_OP_ADD, of.write.gemm(h, u, TN_TRANSPOSE_B, 1), summary));
    of.outputs = {of.write.end_memory(h, next), of.write.from_steps(next),
                  of.write.from_steps(of.write.from_steps(step))};
    check(of);
  }
}

// A loop of a body inside with two memories: one depends on that of the scan by what is left in it alone, the other not
// at all. leads: the next step depends on the other one.
SeenCase reading_a_memory(bool leads) {
  SeenCase of({2, 0, 3, 1}, false, {1, 1, 1, 1}, {2, 0, 1, 3, 1, 2});
  const ValueId inner = of.part(kSize), u = of.input({fixed(kSize), fixed(kSize)});
  const ValueId h = of.memory();
  const ValueId p = of.see(inner);
  const Dim parts = of.graph.spec(p).shape[0];
  const int32_t order = of.inner(parts, false, false);
  const ValueId read = of.apply(TN_OP_MUL, p, of.write.segment(TN_SEGMENT_BROADCAST, h, parts, 0));
  const ValueId state = of.write.memory(1, f64({fixed(kSize)}), kNoValue);
  const ValueId apart = of.write.memory(1, f64({fixed(kSize)}), kNoValue);
  const ValueId step =
      of.apply(TN_OP_TANH, of.apply(TN_OP_ADD, of.write.gemm(state, u, 0, 1), of.write.to_steps(read, order)));
  const ValueId last = of.write.end_memory(state, step);
  const ValueId other = of.write.end_memory(apart, of.apply(TN_OP_ADD, apart, of.write.to_steps(p, order)));
  EXPECT_EQ(end_loop(of.graph, 1).reason, "");
  const ValueId added = leads ? other : of.write.segment(TN_SEGMENT_SUM, p, parts, 0);
  const ValueId next = of.apply(TN_OP_TANH, of.apply(TN_OP_ADD, of.write.gemm(h, u, TN_TRANSPOSE_B, 1), added));
  of.outputs = {of.write.end_memory(h, next), of.write.from_steps(last), of.write.from_steps(other)};
  return of;
}

TEST(SeenSequences, ALoopInsideThatReadsAMemoryRunsBehindTheLoop) { check(reading_a_memory(false)); }

TEST(SeenSequences, ALoopInsideRunsAsAWhole) {
  SeenCase of = reading_a_memory(true);
  EXPECT_EQ(end_loop(of.graph, 0).reason, "cannot run within a step of another in this version");
}

TEST(SeenSequences, ALoopInsideThatAMemoryLeadsToIsRefused) {
  SeenCase of({2, 1}, false, {1, 1}, {2, 0, 1});
  const ValueId h = of.memory();
  const ValueId p = of.see(of.part(kSize));
  const Dim parts = of.graph.spec(p).shape[0];
  const int32_t order = of.inner(parts, false, false);
  const ValueId state = of.write.memory(1, f64({fixed(kSize)}), h);
  const ValueId summary = of.write.end_memory(state, of.apply(TN_OP_ADD, state, of.write.to_steps(p, order)));
  EXPECT_EQ(end_loop(of.graph, 1).reason, "");
  of.write.end_memory(h, summary);
  const LoopFault fault = end_loop(of.graph, 0);
  EXPECT_EQ(std::string(fault.operation) + " " + fault.reason,
            "scan cannot run within a step of another in this version");
}

}  // namespace

}  // namespace tenon_tests

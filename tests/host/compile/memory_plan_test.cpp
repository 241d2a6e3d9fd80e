// SPDX-License-Identifier: Apache-2.0
#include "host/compile/memory_plan.h"

#include <gtest/gtest.h>

#include <random>

#include "core/graph/passes/passes.h"
#include "host/compile/arena_space.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

Spec floats(int64_t n) { return {TN_F32, {tn_dim_constant(n)}, TN_DENSE, 0, {}}; }

// Random graphs: values that are live at the same time do not overlap, and the arena is at most 1.5 times the bound.
TEST(MemoryPlan, LivingValuesNeverOverlap) {
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    Graph graph;
    std::vector<ValueId> made{graph.add_external(floats(10), "in")};
    for (int i = 0; i < 30; ++i) {
      Node node;
      node.operation = Gather();
      for (int k = 0; k < 2; ++k) node.inputs.push_back(made[random() % made.size()]);
      graph.nodes.push_back(node);
      const ValueId output = graph.add_value(floats(1 + random() % 500), i);
      graph.nodes.back().outputs = {output};
      made.push_back(output);
    }
    std::vector<bool> placed(graph.values.size(), false);
    placed[0] = true;
    const MemoryPlan plan = plan_memory(graph, placed, {made.back()}, {});
    std::vector<size_t> last(graph.values.size(), 0);
    for (size_t node = 0; node < graph.nodes.size(); ++node) {
      last[static_cast<size_t>(graph.nodes[node].outputs[0])] = node;
      for (const ValueId input : graph.nodes[node].inputs) last[static_cast<size_t>(input)] = node;
    }
    last[static_cast<size_t>(made.back())] = graph.nodes.size();
    EXPECT_EQ(plan.offsets[0], MemoryPlan::kNotHere);
    for (size_t a = 1; a < graph.values.size(); ++a)
      for (size_t b = a + 1; b < graph.values.size(); ++b) {
        if (last[a] < b - 1) continue;  // a is dead before node b - 1 makes b
        const uint64_t a_end = plan.offsets[a] + bytes_of(graph.values[a].spec, {});
        const uint64_t b_end = plan.offsets[b] + bytes_of(graph.values[b].spec, {});
        EXPECT_TRUE(a_end <= plan.offsets[b] || b_end <= plan.offsets[a]) << a << " and " << b;
      }
    EXPECT_GE(plan.bytes, plan.live_bound);
    EXPECT_LE(static_cast<double>(plan.bytes), 1.5 * static_cast<double>(plan.live_bound));
  }
}

// Every value has the lowest offset that is free during its life, the largest values placed first.
TEST(ArenaSpace, TakesTheLowestFreePlace) {
  std::mt19937 random(7);
  struct Place {
    size_t first, last;
    uint64_t begin, end;
  };
  for (int round = 0; round < 50; ++round) {
    const size_t nodes = 1 + random() % 40;
    ArenaSpace space(nodes);
    std::vector<Place> places;
    for (int i = 0; i < 60; ++i) {
      const size_t a = random() % nodes, b = random() % nodes;
      const uint64_t bytes = random() % 8;  // also none
      Place place{std::min(a, b), std::max(a, b), 0, bytes};
      const auto taken = [&](const Place& other) {
        return other.first <= place.last && place.first <= other.last && other.begin < place.end &&
               place.begin < other.end && other.begin < other.end && place.begin < place.end;
      };
      while (std::any_of(places.begin(), places.end(), taken)) ++place.begin, ++place.end;
      EXPECT_EQ(space.take(place.first, place.last, bytes), place.begin);
      places.push_back(place);
    }
  }
}

// A value is live until the last reader of its views.
TEST(MemoryPlan, ViewsKeepTheirRootAlive) {
  Graph graph;
  graph.add_external(floats(4), "in");
  const ValueId base = graph.add_value(floats(100), 0);
  const ValueId view = graph.add_value(floats(100), 1);
  graph.values[static_cast<size_t>(view)].alias_of = base;
  const ValueId other = graph.add_value(floats(100), 2);
  const ValueId end = graph.add_value(floats(1), 3);
  graph.nodes.resize(4);
  for (Node& node : graph.nodes) node.operation = Gather();
  graph.nodes[0].outputs = {base};
  graph.nodes[1].inputs = {base}, graph.nodes[1].outputs = {view};
  graph.nodes[2].outputs = {other};
  graph.nodes[3].inputs = {view, other}, graph.nodes[3].outputs = {end};
  const MemoryPlan plan = plan_memory(graph, {true, false, false, false, false}, {end}, {});
  EXPECT_NE(plan.offsets[static_cast<size_t>(base)], plan.offsets[static_cast<size_t>(other)]);
  EXPECT_EQ(plan.offsets[static_cast<size_t>(view)], MemoryPlan::kNotHere);
}

// In x -> y -> z -> w each value has one reader, and all share one place. w has two: only the output of the second
// reader reuses its place.
TEST(MemoryPlan, WhatIsReadForTheLastTimeGivesItsPlace) {
  ProgramWriter writer;
  writer.output(writer.apply(TN_OP_EXP, writer.input(TN_FULL)));
  const auto program = std::make_shared<Program>(writer.finish());
  Graph graph;
  GraphWriter nodes(graph, 0, false, TN_F32);
  const auto apply = [&](ValueId value) { return nodes.pointwise(program, {value}, 0)[0]; };
  const ValueId in = graph.add_external(floats(100), "in");
  const ValueId x = apply(in), y = apply(x), z = apply(y);
  const ValueId w = apply(z), v = apply(w), again = apply(w);
  const std::vector<bool> placed = {true, false, false, false, false, false, false};
  const MemoryPlan plan = plan_memory(graph, placed, {v, again}, {});
  const auto offset = [&](ValueId value) { return plan.offsets[static_cast<size_t>(value)]; };
  EXPECT_EQ(offset(x), offset(y));
  EXPECT_EQ(offset(x), offset(z));
  EXPECT_EQ(offset(x), offset(w));
  EXPECT_NE(offset(w), offset(v));
  EXPECT_EQ(offset(w), offset(again));
  EXPECT_EQ(plan.bytes, plan.live_bound);
  EXPECT_EQ(plan.bytes, 2 * bytes_of(floats(100), {}));
}

struct InPlace {
  Graph graph;
  GraphWriter writer{graph, 0, false, TN_F32};
  const ValueId in = graph.add_external(floats(12), "in");
  const ValueId x = apply(in);

  ValueId apply(ValueId value) {
    ProgramWriter program;
    program.output(program.apply(TN_OP_EXP, program.input(TN_FULL)));
    return writer.pointwise(std::make_shared<Program>(program.finish()), {value}, 0)[0];
  }
  // Whether the output `last` reuses the memory of `x`. `last` and `kept` stay readable after the last node.
  bool takes_its_place(ValueId last, const std::vector<ValueId>& kept = {}) {
    std::vector<bool> placed(graph.values.size(), false);
    for (size_t i = 0; i < placed.size(); ++i) placed[i] = graph.values[i].producer < 0;
    std::vector<ValueId> all = kept;
    all.push_back(last);
    const MemoryPlan plan = plan_memory(graph, placed, all, {});
    return plan.offsets[static_cast<size_t>(last)] == plan.offsets[static_cast<size_t>(x)];
  }
};

// If a node reads a value twice, once through a view, its output does not reuse the memory: the device may read the
// second operand after it has overwritten the first.
TEST(MemoryPlan, WhatTwoOperandsReadStays) {
  for (const bool twice : {false, true}) {
    InPlace made;
    const ValueId seen = made.writer.view(made.x, {tn_dim_constant(12), tn_dim_constant(1)});
    const ValueId other = twice ? seen : made.graph.add_external(floats(12), "other");
    ProgramWriter program;
    const int32_t first = program.input(TN_FULL), second = program.input(TN_PER_ROW);
    program.output(program.apply(TN_OP_ADD, first, second));
    const ValueId column = twice ? made.x : made.writer.view(other, {tn_dim_constant(12)});
    const ValueId last = made.writer.pointwise(std::make_shared<Program>(program.finish()), {seen, column}, 1)[0];
    EXPECT_EQ(made.takes_its_place(last), !twice);
  }
}

// In a grid of one column, a value per row has the size of the grid, but an output over the grid does not reuse its
// memory: the device may read the two extents in different orders.
TEST(MemoryPlan, OtherExtentsStayApart) {
  for (const uint8_t extent : {uint8_t{TN_FULL}, uint8_t{TN_PER_ROW}}) {
    InPlace made;
    const ValueId seen = made.writer.view(made.x, {tn_dim_constant(12), tn_dim_constant(1)});
    ProgramWriter program;
    const int32_t each = extent == TN_FULL ? program.input(TN_FULL) : program.input(TN_PER_ROW);
    program.output(program.apply(TN_OP_ADD, program.expand(each, TN_FULL), program.constant(1)));
    const Shape whole{tn_dim_constant(12), tn_dim_constant(1)};
    const ValueId last = made.writer.pointwise_on(std::make_shared<Program>(program.finish()), {seen}, whole, 1)[0];
    EXPECT_EQ(made.takes_its_place(last), extent == TN_FULL);
  }
}

// The output of an epilogue reuses the memory of the product, unless the product is read otherwise or kept.
TEST(MemoryPlan, TheProductThatNobodyReadsGivesItsPlace) {
  enum { kNobody, kRead, kKept };
  const auto check = [](int use, bool convolution) {
    SCOPED_TRACE(testing::Message() << use << (convolution ? " of a convolution" : ""));
    Graph graph;
    GraphWriter writer(graph, 0, false, TN_F32);
    Shape cube(3, tn_dim_constant(8)), kernel = {tn_dim_constant(8), tn_dim_constant(1), tn_dim_constant(8)};
    const ValueId a = graph.add_external({TN_F32, cube, TN_DENSE, 0, {}}, "a");
    const ValueId b = graph.add_external({TN_F32, convolution ? kernel : cube, TN_DENSE, 0, {}}, "b");
    const tn_window window = {sizeof window, 1, {8}, {1}, {1}, {1}, {0}, {0}};
    const ValueId product = convolution ? writer.conv(TN_CONV_RESULTS, window, 1, a, b) : writer.gemm(a, b, 0, 1);
    ProgramWriter program;
    program.output(program.apply(TN_OP_EXP, program.input(TN_FULL)));
    const auto exp = std::make_shared<Program>(program.finish());
    const ValueId result = writer.pointwise(exp, {product}, 2)[0];
    std::vector<ValueId> kept{result};
    if (use == kRead) kept.push_back(writer.gemm(product, a, 0, 1));
    if (use == kKept) kept.push_back(product);
    attach_epilogues(graph, [](const Node& /*product*/) { return true; });
    std::vector<bool> placed(graph.values.size(), false);
    placed[static_cast<size_t>(a)] = placed[static_cast<size_t>(b)] = true;
    const MemoryPlan plan = plan_memory(graph, placed, kept, {});
    const auto offset = [&](ValueId value) { return plan.offsets[static_cast<size_t>(value)]; };
    ASSERT_TRUE(graph.nodes[0].epilogue);
    ASSERT_EQ(graph.nodes[0].epilogue->product, 0);
    EXPECT_EQ(offset(result) == offset(product), use == kNobody);
  };
  for (const int use : {kNobody, kRead, kKept})
    for (const bool convolution : {false, true}) check(use, convolution);
}

}  // namespace
}  // namespace tenon_tests

// Fusion of neighbouring programs, of a product and its epilogue, and of a gather and the sums of its rows; and cases
// that must not be fused. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "core/graph/passes/passes.h"
#include "tests/support/graphs/graph_interpreter.h"

namespace tenon_tests {

using namespace tenon::core;

namespace {

Spec f64(const Shape& shape) { return {TN_F64, shape, TN_DENSE, 0, {}}; }
Dim fixed(int64_t n) { return tn_dim_constant(n); }
Dim samples() { return tn_dim_symbol(TN_SYMBOL_SAMPLES); }

std::shared_ptr<const Program> binary(uint16_t op, uint8_t second = TN_FULL, tn_dtype dtype = TN_COMPUTE) {
  ProgramWriter writer;
  const int32_t first = writer.input(TN_FULL);
  writer.output(writer.apply(op, first, writer.input(second)), dtype);
  return std::make_shared<Program>(writer.finish());
}

// Consecutive bias, activation and row reduction become one program; the values between them are not stored.
TEST(Fusion, JoinsNeighbours) {
  Graph graph;
  graph.layers = {"layer"};
  const ValueId x = graph.add_external(f64({samples(), fixed(4)}), "x");
  const ValueId bias = graph.add_external(f64({fixed(4)}), "bias");
  GraphWriter writer(graph, 0, false, TN_F64);
  ProgramWriter add;
  const int32_t full = add.input(TN_FULL);
  add.output(add.apply(TN_OP_ADD, full, add.input(TN_PER_COLUMN)));
  const ValueId biased = writer.pointwise(std::make_shared<Program>(add.finish()), {x, bias}, 1)[0];
  ProgramWriter tanh;
  tanh.output(tanh.apply(TN_OP_TANH, tanh.input(TN_FULL)));
  const ValueId active = writer.pointwise(std::make_shared<Program>(tanh.finish()), {biased}, 0)[0];
  ProgramWriter sum;
  sum.output(sum.reduce(TN_OP_REDUCE_SUM, sum.input(TN_FULL), TN_PER_ROW));
  const ValueId total = writer.pointwise(std::make_shared<Program>(sum.finish()), {active}, 1)[0];
  ProgramWriter unused;
  unused.output(unused.apply(TN_OP_NEG, unused.input(TN_FULL)));
  writer.pointwise(std::make_shared<Program>(unused.finish()), {active}, 0);
  fuse(graph, {total});
  ASSERT_EQ(graph.nodes.size(), 1U);
  EXPECT_EQ(graph.nodes[0].outputs, (std::vector<ValueId>{total}));
  EXPECT_EQ(graph.nodes[0].inputs, (std::vector<ValueId>{x, bias}));
}

// A node does not move before the nodes that compute its inputs.
TEST(Fusion, KeepsTheOrder) {
  Graph graph;
  graph.layers = {"layer"};
  const ValueId x = graph.add_external(f64({fixed(4), fixed(4)}), "x");
  GraphWriter writer(graph, 0, false, TN_F64);
  ProgramWriter tanh;
  tanh.output(tanh.apply(TN_OP_TANH, tanh.input(TN_FULL)));
  const ValueId first = writer.pointwise(std::make_shared<Program>(tanh.finish()), {x}, 1)[0];
  const ValueId product = writer.gemm(first, first, 0, 1);
  ProgramWriter add;
  const int32_t a = add.input(TN_FULL);
  add.output(add.apply(TN_OP_ADD, a, add.input(TN_FULL)));
  const ValueId sum = writer.pointwise(std::make_shared<Program>(add.finish()), {first, product}, 1)[0];
  fuse(graph, {sum});
  ASSERT_EQ(graph.nodes.size(), 3U);
  EXPECT_TRUE(graph.nodes[1].is<Gemm>());
}

// A value that is stored in a narrower type is read with its rounding, so its reader stays separate.
TEST(Fusion, KeepsWhatAnOutputIsRoundedTo) {
  Graph graph;
  const ValueId x = graph.add_external(f64({samples(), fixed(4)}), "x");
  GraphWriter writer(graph, 0, false, TN_F64);
  const ValueId narrow = writer.pointwise(binary(TN_OP_MUL, TN_FULL, TN_F32), {x, x}, 1)[0];
  const ValueId sum = writer.pointwise(binary(TN_OP_ADD), {narrow, x}, 1)[0];
  fuse(graph, {sum});
  ASSERT_EQ(graph.nodes.size(), 2U);
  EXPECT_EQ(graph.nodes[1].inputs, (std::vector<ValueId>{narrow, x}));
}

// Sums of rows that are read as one value per column are not fused, although the shapes are equal on a square grid.
TEST(Fusion, KeepsExtentsApart) {
  Graph graph;
  const ValueId x = graph.add_external(f64({fixed(3), fixed(3)}), "x");
  GraphWriter writer(graph, 0, false, TN_F64);
  ProgramWriter sums;
  sums.output(sums.reduce(TN_OP_REDUCE_SUM, sums.input(TN_FULL), TN_PER_ROW));
  const ValueId of_rows = writer.pointwise(std::make_shared<Program>(sums.finish()), {x}, 1)[0];
  const ValueId moved = writer.pointwise(binary(TN_OP_ADD, TN_PER_COLUMN), {x, of_rows}, 1)[0];
  fuse(graph, {moved});
  ASSERT_EQ(graph.nodes.size(), 2U);
  Interpreter interpreter(graph, {0, 2});
  interpreter.values[static_cast<size_t>(x)] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  interpreter.run();
  EXPECT_EQ(interpreter.values[static_cast<size_t>(moved)], (std::vector<double>{7, 17, 27, 10, 20, 30, 13, 23, 33}));
}

// On a square grid one program reads a value per row, and the next program reads the same value per column.
TEST(Fusion, KeepsExtentsOfOneOperandApart) {
  Graph graph;
  const ValueId x = graph.add_external(f64({fixed(2), fixed(2)}), "x"), v = graph.add_external(f64({fixed(2)}), "v");
  GraphWriter writer(graph, 0, false, TN_F64);
  const ValueId by_row = writer.pointwise(binary(TN_OP_ADD, TN_PER_ROW), {x, v}, 1)[0];
  const ValueId both = writer.pointwise(binary(TN_OP_ADD, TN_PER_COLUMN), {by_row, v}, 1)[0];
  fuse(graph, {both});
  ASSERT_EQ(graph.nodes.size(), 1U);
  Interpreter interpreter(graph, {0, 2});
  interpreter.values[static_cast<size_t>(x)] = {1, 2, 3, 4};
  interpreter.values[static_cast<size_t>(v)] = {10, 200};
  interpreter.run();
  EXPECT_EQ(interpreter.values[static_cast<size_t>(both)], (std::vector<double>{21, 212, 213, 404}));
}

// Returns the tanh of each of 1000 values: the first is x, each other one the tanh before it.
std::vector<ValueId> chain_of_tanh(GraphWriter& writer, ValueId x) {
  ProgramWriter tanh;
  tanh.output(tanh.apply(TN_OP_TANH, tanh.input(TN_FULL)));
  const auto program = std::make_shared<Program>(tanh.finish());
  std::vector<ValueId> values;
  for (int i = 0; i < 1000; ++i)
    values.push_back(writer.pointwise(program, {values.empty() ? x : values.back()}, 1)[0]);
  return values;
}

// A long chain becomes programs of at most 256 instructions, each of which reads one value and writes one.
TEST(Fusion, CutsLongChains) {
  Graph graph, plain;
  for (Graph* each : {&graph, &plain}) {
    each->layers = {"layer"};
    const ValueId x = each->add_external(f64({samples(), fixed(2)}), "x");
    GraphWriter writer(*each, 0, false, TN_F64);
    const ValueId last = chain_of_tanh(writer, x).back();
    if (each == &graph) fuse(graph, {last});
  }
  EXPECT_EQ(graph.nodes.size(), 8U) << "each tanh counts two instructions, with its input: 128 of 1000 in a program";
  for (const Node& node : graph.nodes) {
    EXPECT_LE(node.pointwise()->program->instructions.size(), 256U);
    EXPECT_EQ(node.inputs.size(), 1U);
    EXPECT_EQ(node.outputs.size(), 1U);
  }
  std::vector<Numbers> results;
  for (const Graph* each : {&graph, &plain}) {
    Interpreter interpreter(*each, {0, 1});
    interpreter.values[0] = {0.5, -3};
    interpreter.run();
    results.push_back(interpreter.values.back());
  }
  EXPECT_EQ(results[0], results[1]);
}

// Outputs without readers are removed from kernels that compute several layers, not from those of a single layer.
TEST(Fusion, DropsWhatAKernelMakesForNobody) {
  for (const bool several : {true, false}) {
    Graph graph;
    graph.layers = {"one", "other"};
    const Spec spec = f64({samples(), fixed(2)});
    const ValueId x = graph.add_external(spec, "x");
    const std::vector<int32_t> layers = several ? std::vector<int32_t>{0, 1} : std::vector<int32_t>{};
    NativeCall call;
    call.operands.inputs = 1;
    call.operands.outputs = 2;
    const std::vector<ValueId> made = GraphWriter(graph, 0, false, TN_F64).native(call, {x}, {spec, spec}, layers);
    fuse(graph, {made[1]});
    ASSERT_EQ(graph.nodes.size(), 1U);
    EXPECT_EQ(graph.nodes[0].outputs, (std::vector<ValueId>{several ? kNoValue : made[0], made[1]}));
  }
}

// One program reads the bytes as floats, the other as integers: the fused program has an input for each kind.
TEST(Fusion, KeepsKindsApart) {
  Graph graph;
  const ValueId x = graph.add_external({TN_U8, {samples(), fixed(2)}, TN_DENSE, 0, {}}, "x");
  GraphWriter writer(graph, 0, false, TN_F64);
  ProgramWriter half;
  half.output(half.apply(TN_OP_MUL, half.input(TN_FULL), half.constant(0.5)));
  const ValueId halves = writer.pointwise(std::make_shared<Program>(half.finish()), {x}, 1)[0];
  ProgramWriter next;
  next.output(next.apply(TN_OP_ADD, next.input(TN_FULL, TN_INT), next.constant(1, TN_INT)), TN_I64);
  const ValueId following = writer.pointwise(std::make_shared<Program>(next.finish()), {x}, 1)[0];
  fuse(graph, {halves, following});
  ASSERT_EQ(graph.nodes.size(), 1U);
  EXPECT_EQ(graph.nodes[0].inputs, (std::vector<ValueId>{x, x}));
  EXPECT_NO_THROW(Program::from(graph.nodes[0].pointwise()->program->view()));
}

// A flat program that is fused with a program over rows gets the grid of the latter, in either order.
TEST(Fusion, TakesTheGridOfRows) {
  for (const bool flat_first : {true, false}) {
    Graph graph;
    const ValueId x = graph.add_external(f64({samples(), fixed(3), fixed(5)}), "x");
    GraphWriter writer(graph, 0, false, TN_F64);
    ProgramWriter tanh;
    tanh.output(tanh.apply(TN_OP_TANH, tanh.input(TN_FULL)));
    const auto flat = [&](ValueId value) {
      return writer.pointwise(std::make_shared<Program>(tanh.finish()), {value}, 1)[0];
    };
    ProgramWriter share;
    const int32_t each = share.input(TN_FULL);
    share.output(share.apply(TN_OP_DIV, each, share.reduce(TN_OP_REDUCE_SUM, each, TN_PER_ROW)));
    const auto of_rows = [&](ValueId value) {
      return writer.pointwise(std::make_shared<Program>(share.finish()), {value}, 2)[0];
    };
    const ValueId last = flat_first ? of_rows(flat(x)) : flat(of_rows(x));
    fuse(graph, {last});
    ASSERT_EQ(graph.nodes.size(), 1U);
    EXPECT_TRUE(same(graph.nodes[0].pointwise()->rows, elements(Shape{samples(), fixed(3)})));
    EXPECT_TRUE(same(graph.nodes[0].pointwise()->columns, fixed(5)));
  }
}

// A product that one program reads, after attach_epilogues.
struct Epilogue {
  Graph graph;
  ValueId product = kNoValue, result = kNoValue;
  Epilogue(uint16_t op, bool backward, const std::function<std::vector<ValueId>(Graph&, ValueId)>& operands) {
    const ValueId a = graph.add_external(f64({samples(), fixed(4)}), "a");
    const ValueId b = graph.add_external(f64({fixed(4), fixed(3)}), "b");
    product = GraphWriter(graph, 0, false, TN_F64).gemm(a, b, 0, 1);
    const std::vector<ValueId> read = operands(graph, product);
    result = GraphWriter(graph, 0, backward, TN_F64).pointwise(binary(op), read, 1)[0];
    attach_epilogues(graph, [](const Node& /*product*/) { return true; });
  }
  [[nodiscard]] bool attached() const {
    return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                       [](const Node& node) { return node.epilogue.has_value(); });
  }
};

TEST(Epilogues, OfOneReadingInTheSamePhase) {
  const auto with_another = [](Graph& graph, ValueId product) {
    return std::vector<ValueId>{product, graph.add_external(graph.spec(product), "other")};
  };
  EXPECT_TRUE(Epilogue(TN_OP_MUL, false, with_another).attached());
  // The second operand is the product, which is not complete while its epilogue runs.
  EXPECT_FALSE(Epilogue(TN_OP_MUL, false, [](Graph&, ValueId product) {
                 return std::vector<ValueId>{product, product};
               }).attached());
  EXPECT_FALSE(Epilogue(TN_OP_MUL, false, [](Graph& graph, ValueId product) {
                 Shape longer = graph.spec(product).shape;
                 longer.push_back(fixed(1));
                 return std::vector<ValueId>{product, GraphWriter(graph, 0, false, TN_F64).view(product, longer)};
               }).attached());
  // The product is of forward and the program of backward: a prediction runs forward alone and may read the product.
  EXPECT_FALSE(Epilogue(TN_OP_MUL, true, with_another).attached());
}

// Of a convolution, whose rows are the places of all samples, but not of the sums of its weights: these are complete
// after all samples.
TEST(Epilogues, OfConvolutions) {
  for (const int32_t op : {TN_CONV_RESULTS, TN_CONV_IMAGES, TN_CONV_WEIGHTS}) {
    Graph graph;
    GraphWriter writer(graph, 0, false, TN_F64);
    const tn_window window = {sizeof window, 2, {5, 4}, {2, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}};
    const ValueId images = graph.add_external(f64({samples(), fixed(5), fixed(4), fixed(3)}), "images");
    const ValueId results = graph.add_external(f64({samples(), fixed(4), fixed(4), fixed(6)}), "results");
    const ValueId weights = graph.add_external(f64({fixed(6), fixed(2), fixed(1), fixed(3)}), "weights");
    const ValueId made =
        writer.conv(op, window, 1, op == TN_CONV_IMAGES ? results : images, op == TN_CONV_WEIGHTS ? results : weights);
    const Shape shape = graph.spec(made).shape;
    const ValueId bias = graph.add_external(f64({shape.back()}), "bias");
    ProgramWriter program;
    const int32_t added = program.input(TN_PER_COLUMN);
    program.output(program.apply(TN_OP_ADD, added, program.input(TN_FULL)));
    const ValueId result = writer.pointwise(std::make_shared<Program>(program.finish()), {bias, made},
                                            static_cast<int32_t>(shape.size()) - 1)[0];
    attach_epilogues(graph, [](const Node& /*product*/) { return true; });
    if (op == TN_CONV_WEIGHTS) {
      EXPECT_EQ(graph.nodes.size(), 2U);
      continue;
    }
    ASSERT_EQ(graph.nodes.size(), 1U);
    const Node& node = graph.nodes[0];
    ASSERT_TRUE(node.is<Conv>() && node.epilogue);
    EXPECT_EQ(node.epilogue->product, 1);
    EXPECT_EQ(node.inputs, (std::vector<ValueId>{op == TN_CONV_IMAGES ? results : images, weights, bias}));
    EXPECT_EQ(node.outputs, (std::vector<ValueId>{made, result}));
    EXPECT_TRUE(same(node.pointwise()->rows, elements(shape.data(), 3)));
    EXPECT_TRUE(same(node.pointwise()->columns, shape.back()));
  }
}

// A gather and the sum over segments of its rows become one node if the rows have no other reader.
TEST(Bags, OfRowsThatNobodyElseReads) {
  enum { kAlone, kKept, kReadBefore, kReadAfter, kViewed };
  for (const int use : {kAlone, kKept, kReadBefore, kReadAfter, kViewed}) {
    SCOPED_TRACE(use);
    Graph graph;
    const Dim rows = tn_dim_symbol(TN_SYMBOL_FIRST_RAGGED);
    Dim ends = samples();
    ends.offset = 1;
    graph.rows[rows.symbol] = {samples(), graph.add_external({TN_I64, {ends}, TN_DENSE, 0, {}}, "offsets")};
    const ValueId table = graph.add_external(f64({fixed(4), fixed(3)}), "table");
    const ValueId ids = graph.add_external({TN_I64, {rows}, TN_DENSE, 0, {}}, "ids");
    GraphWriter writer(graph, 0, false, TN_F64);
    const ValueId gathered = writer.gather(table, ids);
    std::vector<ValueId> kept;
    if (use == kKept) kept.push_back(gathered);
    if (use == kReadBefore) kept.push_back(writer.pointwise(binary(TN_OP_MUL), {gathered, gathered}, 1)[0]);
    if (use == kViewed) kept.push_back(writer.view(gathered, {elements(graph.spec(gathered).shape)}));
    kept.push_back(writer.segment(TN_SEGMENT_SUM, gathered, rows, 0));
    if (use == kReadAfter) kept.push_back(writer.pointwise(binary(TN_OP_MUL), {gathered, gathered}, 1)[0]);
    const size_t nodes = graph.nodes.size();
    join_bags(graph, kept);
    EXPECT_EQ(graph.nodes.size(), use == kAlone ? nodes - 1 : nodes);
    for (const ValueId value : kept)
      EXPECT_GE(graph.values[static_cast<size_t>(value)].producer, 0) << "no node computes value " << value;
  }
}

// Rows by ids [samples, 2] of a table, and their products with x [samples, 1, 3].
struct RowProducts {
  enum Use { kAlone, kKept, kReadOtherwise, kTwice };

  explicit RowProducts(Use use) {
    GraphWriter writer(graph, 0, false, TN_F64);
    gathered = writer.gather(table, ids);
    kept.push_back(writer.gemm(x, gathered, TN_TRANSPOSE_B, 0.5));
    if (use == kKept) kept.push_back(gathered);
    if (use == kReadOtherwise) kept.push_back(writer.pointwise(binary(TN_OP_MUL), {gathered, gathered}, 1)[0]);
    if (use == kTwice) kept.push_back(writer.gemm(gathered, gathered, TN_TRANSPOSE_B, 1));
  }

  Graph graph;
  const ValueId table = graph.add_external(f64({fixed(4), fixed(3)}), "table");
  const ValueId ids = graph.add_external({TN_I64, {samples(), fixed(2)}, TN_DENSE, 0, {}}, "ids");
  const ValueId x = graph.add_external(f64({samples(), fixed(1), fixed(3)}), "x");
  ValueId gathered = kNoValue;
  std::vector<ValueId> kept;
};

TEST(RowProducts, ReadRowsThatProductsAloneRead) {
  for (const auto use : {RowProducts::kAlone, RowProducts::kKept, RowProducts::kReadOtherwise, RowProducts::kTwice}) {
    SCOPED_TRACE(use);
    RowProducts made(use);
    const size_t nodes = made.graph.nodes.size();
    size_t asked = 0;
    join_gathers(made.graph, made.kept, [&](const Node& node) { return node.is<GatherGemm>() && ++asked > 0; });
    const bool joined = use == RowProducts::kAlone || use == RowProducts::kTwice;
    ASSERT_EQ(made.graph.nodes.size(), joined ? nodes - 1 : nodes);
    if (!joined) continue;
    EXPECT_GE(asked, made.kept.size());
    const Node& node = made.graph.nodes[0];
    EXPECT_EQ(node.inputs, (std::vector<ValueId>{made.x, made.table, kNoValue, made.ids}));
    EXPECT_EQ(node.outputs, std::vector<ValueId>{made.kept[0]});
    EXPECT_EQ(node.as<GatherGemm>()->gemm.alpha, 0.5);
    EXPECT_TRUE(same(matrix_shape(made.graph, node, 1), {samples(), fixed(2), fixed(3)}));
    if (use == RowProducts::kTwice) {
      EXPECT_EQ(made.graph.nodes[1].inputs, (std::vector<ValueId>{made.table, made.table, made.ids, made.ids}));
    }
  }
}

TEST(RowProducts, StayAsTheyAreWhereOneIsNotBetter) {
  RowProducts made(RowProducts::kTwice);
  const size_t nodes = made.graph.nodes.size();
  size_t asked = 0;
  join_gathers(made.graph, made.kept, [&](const Node& /*node*/) { return ++asked == 1; });
  EXPECT_EQ(asked, 2U);
  EXPECT_EQ(made.graph.nodes.size(), nodes);
  EXPECT_TRUE(made.graph.nodes[0].is<Gather>());
  EXPECT_TRUE(made.graph.nodes[1].is<Gemm>());
}

// The gradient of a table whose rows are factors of products of one row each is summed from their factors.
TEST(RowProducts, AreMultipliedWhileTheyAreSummed) {
  for (const bool better : {true, false}) {
    RowProducts made(RowProducts::kAlone);
    const ValueId seed = made.graph.add_external(made.graph.spec(made.kept[0]), "seed");
    const auto gradients = differentiate(made.graph, {{made.kept[0], seed}}, {made.table}, TN_F64, {made.table});
    made.kept.push_back(gradients.at(made.table));
    const size_t nodes = made.graph.nodes.size();
    join_products(made.graph, made.kept, [better](const Node& /*node*/) { return better; });
    ASSERT_EQ(made.graph.nodes.size(), better ? nodes - 1 : nodes);
    const Node& sums = made.graph.nodes.back();
    ASSERT_TRUE(sums.is<Coalesce>());
    EXPECT_EQ(sums.as<Coalesce>()->stride(), better ? 5U : 3U);
    if (!better) continue;
    EXPECT_EQ(sums.inputs, (std::vector<ValueId>{made.x, made.ids, kNoValue, seed, kNoValue}));
    EXPECT_EQ(sums.as<Coalesce>()->alphas, std::vector<double>{0.5});
  }
}

}  // namespace
}  // namespace tenon_tests

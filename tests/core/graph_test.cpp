// Derivative rules of the primitives against finite differences, run by a plain fp64 interpreter.
// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"
#include "tests/core/graph_gradient_check.h"

namespace tenon_tests {
namespace {

TEST(GraphGradient, GemmInEveryForm) {
  for (const bool batched : {false, true})
    for (const uint32_t flags : {0U, 1U, 2U, 3U}) {
      SCOPED_TRACE(flags);
      Built built;
      const auto shape = [&](int64_t r, int64_t c, bool transposed) {
        Shape s = transposed ? Shape{fixed(c), fixed(r)} : Shape{fixed(r), fixed(c)};
        if (batched) s.insert(s.begin(), samples());
        return f64(s);
      };
      const ValueId a = built.graph.add_external(shape(2, 4, (flags & TN_TRANSPOSE_A) != 0), "a");
      const ValueId b = built.graph.add_external(shape(4, 5, (flags & TN_TRANSPOSE_B) != 0), "b");
      built.inputs = {a, b};
      built.output = GraphWriter(built.graph, 0, false, TN_F64).gemm(a, b, flags, 0.7);
      check(std::move(built));
    }
}

TEST(GraphGradient, GatherAndScatterAdd) {
  for (const bool scatter : {false, true}) {
    Built built;
    const Dim first = scatter ? samples() : fixed(4);
    const ValueId x = built.graph.add_external(f64({first, fixed(2), fixed(2)}), "x");
    built.ids = built.graph.add_external({TN_I64, {samples()}, TN_DENSE, 0, {}}, "ids");
    built.inputs = {x};
    GraphWriter writer(built.graph, 0, false, TN_F64);
    built.output = scatter ? writer.scatter_add(x, built.ids, fixed(4)) : writer.gather(x, built.ids);
    check(std::move(built));
  }
}

// Sums, maxima, broadcasts and shifts within sequences, one of them empty.
TEST(GraphGradient, Segments) {
  for (const int32_t op : {TN_SEGMENT_SUM, TN_SEGMENT_MAX, TN_SEGMENT_BROADCAST, TN_SEGMENT_SHIFT}) {
    SCOPED_TRACE(op);
    Built built;
    const Dim rows = built.rows();
    const Dim first = op == TN_SEGMENT_BROADCAST ? samples() : rows;
    const ValueId x = built.graph.add_external(f64({first, fixed(2), fixed(2)}), "x");
    built.inputs = {x};
    built.output = GraphWriter(built.graph, 0, false, TN_F64).segment(op, x, rows, -1);
    check(std::move(built));
  }
}

TEST(GraphGradient, PrefixSums) {
  for (const uint32_t flags : {0U, 1U, 2U, 3U})
    for (const bool ragged : {false, true}) {
      SCOPED_TRACE(flags);
      Built built;
      const Dim first = ragged ? built.rows() : samples();
      const ValueId x = built.graph.add_external(f64({first, fixed(2), fixed(4)}), "x");
      built.inputs = {x};
      built.output = GraphWriter(built.graph, 0, false, TN_F64).prefix_sum(x, flags);
      check(std::move(built));
    }
}

// The sorted values have the gradient of a gather by the positions, which have none.
TEST(GraphGradient, Argsort) {
  for (const uint32_t flags : {0U, uint32_t{TN_SORT_DESCENDING}}) {
    Built built;
    const ValueId x = built.graph.add_external(f64({fixed(1), fixed(6)}), "x");
    built.inputs = {x};
    GraphWriter writer(built.graph, 0, false, TN_F64);
    const ValueId order = writer.argsort(x, flags, 4);
    EXPECT_EQ(to_string(built.graph.spec(order)), to_string(Spec{TN_I64, {fixed(1), fixed(4)}, TN_DENSE, 0, {}}));
    built.output = writer.gather(writer.view(x, {fixed(6)}), order);
    check(std::move(built));
  }
}

TEST(GraphWriter, RowsAreSortedAndSummedOfFloatsOnly) {
  Built built;
  const ValueId x = built.graph.add_external(f64({fixed(3), samples()}), "x");
  const ValueId none = built.graph.add_external(f64({}), "none");
  const ValueId ids = built.graph.add_external({TN_I64, {fixed(3)}, TN_DENSE, 0, {}}, "ids");
  GraphWriter writer(built.graph, 0, false, TN_F64);
  for (const ValueId wrong : {none, ids}) {
    EXPECT_THROW(writer.argsort(wrong, 0, -1), Error);
    EXPECT_THROW(writer.prefix_sum(wrong, 0), Error);
  }
  EXPECT_THROW(writer.argsort(x, 2, -1), Error);
  EXPECT_THROW(writer.prefix_sum(x, 4), Error);
  EXPECT_THROW(writer.argsort(x, 0, 1), Error) << "of a dimension that varies";
  const ValueId five = built.graph.add_external(f64({samples(), fixed(5)}), "five");
  EXPECT_THROW(writer.argsort(five, 0, 6), Error);
  EXPECT_THROW(writer.argsort(five, 0, -2), Error);
  EXPECT_EQ(to_string(built.graph.spec(writer.argsort(five, 0, 0)).shape), to_string(Shape{samples(), fixed(0)}));
  EXPECT_EQ(to_string(built.graph.spec(writer.argsort(x, 0, -1)).shape), to_string(Shape{fixed(3), samples()}));
}

// Lengths and starts of segments and positions of rows are dense integers without levels.
TEST(GraphWriter, NumbersOfSegmentsAreDense) {
  Built built;
  const Dim rows = built.rows();
  GraphWriter writer(built.graph, 0, false, TN_F64);
  const auto check = [&](int32_t op, const Dim& count) {
    const Spec& spec = built.graph.spec(writer.segment(op, kNoValue, rows, 0));
    EXPECT_EQ(to_string(spec), to_string(Spec{TN_I64, {count}, TN_DENSE, 0, {}}));
    EXPECT_EQ(spec.levels, 0u);
  };
  check(TN_SEGMENT_LENGTH, samples());
  check(TN_SEGMENT_START, samples());
  check(TN_SEGMENT_POSITION, rows);
}

TEST(GraphGradient, SegmentsNameBothShapes) {
  Built built;
  const Dim rows = built.rows();
  const ValueId x = built.graph.add_external(f64({samples(), fixed(2)}), "x");
  GraphWriter writer(built.graph, 0, false, TN_F64);
  EXPECT_THROW(writer.segment(TN_SEGMENT_SUM, x, rows, 0), Error);
  EXPECT_THROW(writer.segment(TN_SEGMENT_SUM, kNoValue, rows, 0), Error);
  EXPECT_THROW(writer.segment(TN_SEGMENT_BROADCAST, x, fixed(3), 0), Error);
  EXPECT_THROW(writer.segment(77, x, rows, 0), Error);
}

// A table that only gathers read gets a row-sparse gradient; the broadcast over segments is not stored.
TEST(GraphGradient, Rows) {
  Built built;
  const Dim rows = built.rows();
  const ValueId table = built.graph.add_external(f64({fixed(4), fixed(3)}), "table");
  built.ids = built.graph.add_external({TN_I64, {samples()}, TN_DENSE, 0, {}}, "ids");
  built.row_ids = built.graph.add_external({TN_I64, {rows}, TN_DENSE, 0, {}}, "row_ids");
  built.inputs = {table};
  built.row_sparse = {table};
  GraphWriter writer(built.graph, 0, false, TN_F64);
  const ValueId bags = writer.segment(TN_SEGMENT_SUM, writer.gather(table, built.row_ids), rows, 0);
  ProgramWriter product;
  product.output(product.apply(TN_OP_MUL, product.input(TN_FULL), product.input(TN_FULL)));
  built.output =
      writer.pointwise(std::make_shared<Program>(product.finish()), {bags, writer.gather(table, built.ids)}, 1)[0];

  Graph graph = built.graph;
  const ValueId seed = graph.add_external(graph.spec(built.output), "seed");
  const ValueId gradient = differentiate(graph, {{built.output, seed}}, {table}, TN_F64, {table}).at(table);
  ASSERT_EQ(graph.spec(gradient).storage, TN_ROW_SPARSE);
  fuse(graph, {gradient});
  const Node& last = graph.nodes.back();
  ASSERT_TRUE(last.is<Coalesce>());
  ASSERT_EQ(last.inputs.size(), 6U);
  EXPECT_EQ(std::count(last.inputs.begin(), last.inputs.end(), built.offsets), 1);
  EXPECT_TRUE(std::none_of(graph.nodes.begin(), graph.nodes.end(),
                           [](const Node& node) { return node.backward && node.is<Segment>(); }));
  check(std::move(built));
}

// A table that a product reads, too, gets a dense gradient.
TEST(GraphGradient, RowsAndDense) {
  Built built;
  const Dim rows = built.rows();
  const ValueId table = built.graph.add_external(f64({fixed(3), fixed(3)}), "table");
  built.row_ids = built.graph.add_external({TN_I64, {rows}, TN_DENSE, 0, {}}, "row_ids");
  built.inputs = {table};
  built.row_sparse = {table};
  GraphWriter writer(built.graph, 0, false, TN_F64);
  const ValueId bags = writer.segment(TN_SEGMENT_SUM, writer.gather(table, built.row_ids), rows, 0);
  built.output = writer.gemm(bags, table, TN_TRANSPOSE_B, 1);
  Graph graph = built.graph;
  const ValueId seed = graph.add_external(graph.spec(built.output), "seed");
  EXPECT_EQ(graph.spec(differentiate(graph, {{built.output, seed}}, {table}, TN_F64, {table}).at(table)).storage,
            TN_DENSE);
  check(std::move(built));
}

TEST(GraphGradient, Moves) {
  const auto with = [](const std::vector<Shape>& shapes, const auto& make) {
    Built built;
    for (const Shape& shape : shapes) built.inputs.push_back(built.graph.add_external(f64(shape), "x"));
    GraphWriter writer(built.graph, 0, false, TN_F64);
    built.output = make(writer, built.inputs);
    check(std::move(built));
  };
  using Inputs = std::vector<ValueId>;
  with({{samples(), fixed(2)}, {samples(), fixed(3)}}, [](GraphWriter& w, const Inputs& x) {
    return w.concat({x[0], x[1], x[0]}, 1);  // a value that comes twice gets both gradients
  });
  with({{samples(), fixed(5), fixed(2)}},
       [](GraphWriter& w, const Inputs& x) { return w.pad(w.slice(x[0], 1, 1, 3), 2, 2, 1); });
  with({{samples(), fixed(3), fixed(4)}}, [](GraphWriter& w, const Inputs& x) { return w.transpose(x[0], {2, 0, 1}); });
}

// The product of the parts of a value, from element `start` on, overlapping or not.
Built product_of_parts(const std::vector<int64_t>& starts, bool reversed = false) {
  Built built;
  built.graph.layers = {"layer"};
  built.inputs = {built.graph.add_external(f64({samples(), fixed(2), fixed(6)}), "x")};
  GraphWriter writer(built.graph, 0, false, TN_F64);
  ProgramWriter program;
  int32_t product = program.constant(1);
  std::vector<ValueId> parts;
  for (const int64_t start : starts) {
    parts.push_back(writer.slice(built.inputs[0], 2, start, 2));
    product = program.apply(TN_OP_MUL, product, program.input(TN_FULL));
  }
  program.output(product);
  if (reversed) std::reverse(parts.begin(), parts.end());
  built.output = writer.pointwise(std::make_shared<Program>(program.finish()), parts, 1)[0];
  return built;
}

TEST(GraphGradient, PartsOfAValueAreOneMove) {
  // The node that the gradient comes from.
  const auto last = [](const std::vector<int64_t>& starts) {
    Built built = product_of_parts(starts);
    const ValueId seed = built.graph.add_external(built.graph.spec(built.output), "seed");
    const ValueId gradient =
        differentiate(built.graph, {{built.output, seed}}, built.inputs, TN_F64).at(built.inputs[0]);
    return built.graph.nodes[static_cast<size_t>(built.graph.values[static_cast<size_t>(gradient)].producer)];
  };
  for (const std::vector<int64_t>& starts :
       {std::vector<int64_t>{0, 2, 4}, {0, 4}, {0, 2}, {4, 2}, {0, 1}, {0, 2, 3}}) {
    check(product_of_parts(starts));
    check(product_of_parts(starts, true));
  }
  const Node whole = last({0, 2, 4}), gap = last({0, 4});
  ASSERT_TRUE(whole.is<Move>() && gap.is<Move>());
  EXPECT_EQ(whole.inputs.size(), 3U);
  EXPECT_FALSE(whole.as<Move>()->fill);
  EXPECT_EQ(gap.inputs.size(), 2U);
  EXPECT_TRUE(gap.as<Move>()->fill);
  EXPECT_FALSE(last({0, 1}).is<Move>());  // they overlap
}

TEST(GraphGradient, ViewsAndSharedValues) {
  Built built;
  const ValueId x = built.graph.add_external(f64({samples(), fixed(2), fixed(3)}), "x");
  const ValueId w = built.graph.add_external(f64({fixed(6), fixed(6)}), "w");
  built.inputs = {x, w};
  GraphWriter writer(built.graph, 0, false, TN_F64);
  const ValueId flat = writer.view(x, {samples(), fixed(6)});
  const ValueId once = writer.gemm(flat, w, 0, 1);
  const ValueId twice = writer.gemm(once, w, TN_TRANSPOSE_B, 1);  // w counts twice
  ProgramWriter program;
  const int32_t a = program.input(TN_FULL);
  const int32_t b = program.input(TN_FULL);
  program.output(program.apply(TN_OP_MUL, program.apply(TN_OP_TANH, a), program.apply(TN_OP_ADD, a, b)));
  built.output = writer.pointwise(std::make_shared<Program>(program.finish()), {twice, flat}, 1)[0];
  check(std::move(built));
}

// A wanted value without influence on the output has the gradient 0; a value on which the output does not depend has no
// gradient.
TEST(GraphGradient, Zero) {
  Built built;
  const ValueId x = built.graph.add_external(f64({samples(), fixed(2)}), "x");
  const ValueId w = built.graph.add_external(f64({samples(), fixed(2)}), "w");
  built.inputs = {x, w};
  ProgramWriter program;
  const int32_t a = program.input(TN_FULL), b = program.input(TN_FULL);
  program.output(program.apply(TN_OP_SELECT, program.apply(TN_OP_LESS, b, program.constant(0)), program.constant(0),
                               program.apply(TN_OP_TANH, a)));
  built.output =
      GraphWriter(built.graph, 0, false, TN_F64).pointwise(std::make_shared<Program>(program.finish()), {x, w}, 1)[0];
  check(built);
  const ValueId apart = built.graph.add_external(f64({samples(), fixed(2)}), "apart");
  const ValueId seed = built.graph.add_external(built.graph.spec(built.output), "seed");
  built.graph.layers = {"layer"};
  const auto gradients = differentiate(built.graph, {{built.output, seed}}, {w, apart}, TN_F64);
  EXPECT_NE(gradients.at(w), kNoValue);
  EXPECT_EQ(gradients.at(apart), kNoValue);
}

// Backward has no nodes for a value that is read only through a stop, here the maximum that a softmax subtracts.
TEST(GraphGradient, NothingOfWhatIsStopped) {
  Built built;
  const Dim rows = built.rows();
  const ValueId x = built.graph.add_external(f64({rows, fixed(2)}), "x");
  built.inputs = {x};
  GraphWriter writer(built.graph, 0, false, TN_F64);
  const ValueId most = writer.segment(TN_SEGMENT_BROADCAST, writer.segment(TN_SEGMENT_MAX, x, rows, 0), rows, 0);
  ProgramWriter program;
  const int32_t a = program.input(TN_FULL), b = program.input(TN_FULL);
  program.output(program.apply(TN_OP_EXP, program.apply(TN_OP_SUB, a, program.apply(TN_OP_STOP, b))));
  built.output = writer.pointwise(std::make_shared<Program>(program.finish()), {x, most}, 1)[0];
  const ValueId seed = built.graph.add_external(built.graph.spec(built.output), "seed");
  const size_t forward = built.graph.nodes.size();
  EXPECT_NE(differentiate(built.graph, {{built.output, seed}}, {x}, TN_F64).at(x), kNoValue);
  EXPECT_EQ(built.graph.nodes.size(), forward + 1);
}

// An author's gradient program of two outputs, only one of which is used.
TEST(GraphGradient, OfAnAuthorWhereAnOutputHasNone) {
  for (const size_t used : {size_t{0}, size_t{1}}) {
    Built built;
    const ValueId x = built.graph.add_external(f64({samples(), fixed(2)}), "x");
    const ValueId y = built.graph.add_external(f64({samples(), fixed(2)}), "y");
    built.inputs = {x, y};
    ProgramWriter program;
    const int32_t a = program.input(TN_FULL), b = program.input(TN_FULL);
    program.output(program.apply(TN_OP_MUL, a, b));
    program.output(program.apply(TN_OP_ADD, a, program.apply(TN_OP_MUL, b, b)));
    const auto forward = std::make_shared<Program>(program.finish());
    const auto author = std::make_shared<Program>(derive_gradient(*forward, {true, true}, {0, 1}));
    built.output = GraphWriter(built.graph, 0, false, TN_F64).pointwise(forward, {x, y}, 1, author)[used];
    check(std::move(built));
  }
}

TEST(GraphWriter, NamesBothShapes) {
  Graph graph;
  const ValueId a = graph.add_external(f64({samples(), fixed(4)}), "a");
  const ValueId b = graph.add_external(f64({fixed(5), fixed(2)}), "b");
  try {
    GraphWriter(graph, 0, false, TN_F64).gemm(a, b, 0, 1);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("[samples, 4]"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("[5, 2]"), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace tenon_tests

// Derivative rules of the primitives against finite differences, and fusion against the graph it came from, both run
// by a plain fp64 interpreter. SPDX-License-Identifier: Apache-2.0
#include "core/graph.h"

#include <gtest/gtest.h>

#include <random>

#include "core/error.h"
#include "tests/support/program_reference.h"

namespace tenon {
namespace {

constexpr int64_t kSamples = 3;
constexpr int64_t kRows = 5;  // of the sequences
constexpr int64_t kSymbols[] = {0, kSamples, kRows};

int64_t value_of(const Dim& dim) { return tn_dim_value(&dim, kSymbols); }
int64_t count_of(const Shape& shape) {
  int64_t count = 1;
  for (const Dim& dim : shape) count *= value_of(dim);
  return count;
}

// Runs a graph; values[v] must be filled for values from outside.
class Interpreter {
 public:
  explicit Interpreter(const Graph& graph) : graph_(graph), values(graph.values.size()) {}

  void run() {
    for (const Node& node : graph_.nodes) step(node);
  }

 private:
  std::vector<double>& at(ValueId value) { return values[static_cast<size_t>(value)]; }

  void step(const Node& node) {
    switch (node.primitive) {
      case Primitive::kPointwise: {
        std::vector<std::vector<double>> inputs;
        for (const ValueId input : node.inputs) inputs.push_back(at(input));
        auto outputs = reference::evaluate(node.program->view(), value_of(node.rows), value_of(node.columns), inputs);
        for (size_t i = 0; i < outputs.size(); ++i) at(node.outputs[i]) = outputs[i];
        return;
      }
      case Primitive::kGemm:
        return gemm(node);
      case Primitive::kGather:
      case Primitive::kScatterAdd:
        return rows(node);
      case Primitive::kMove:
        return move(node);
      case Primitive::kView:
        at(node.outputs[0]) = at(node.inputs[0]);
        return;
      case Primitive::kSegment:
        return segment(node);
      case Primitive::kCoalesce:  // as the dense tensor that it stands for
        for (size_t i = 0; i < node.inputs.size(); i += 3) coalesce(node, i);
        return;
      case Primitive::kNative:
        FAIL() << "no native kernels here";
    }
  }

  void segment(const Node& node) {
    const std::vector<double>& offsets = at(node.inputs[1]);
    const size_t segments = offsets.size() - 1;
    const auto rows = static_cast<size_t>(value_of(node.segment.rows));
    const std::vector<double> none;
    const std::vector<double>& from = node.inputs[0] == kNoValue ? none : at(node.inputs[0]);
    std::vector<double>& out = at(node.outputs[0]);
    out.assign(static_cast<size_t>(count_of(graph_.spec(node.outputs[0]).shape)), 0);
    const bool by_segment = node.segment.op == TN_SEGMENT_SUM || node.segment.op == TN_SEGMENT_MAX ||
                            node.segment.op == TN_SEGMENT_LENGTH || node.segment.op == TN_SEGMENT_START;
    const size_t width = out.size() / (by_segment ? segments : rows);
    for (size_t s = 0; s < segments; ++s) {
      const auto first = static_cast<size_t>(offsets[s]);
      const auto last = static_cast<size_t>(offsets[s + 1]);
      if (node.segment.op == TN_SEGMENT_LENGTH) out[s] = static_cast<double>(last - first);
      if (node.segment.op == TN_SEGMENT_START) out[s] = static_cast<double>(first);
      for (size_t r = first; r < last; ++r)
        for (size_t c = 0; c < width; ++c) {
          double& total = out[s * width + c];
          double& each = out[r * width + c];
          const auto shifted = static_cast<int64_t>(r) + node.segment.by;
          switch (node.segment.op) {
            case TN_SEGMENT_SUM:
              total += from[r * width + c];
              break;
            case TN_SEGMENT_MAX:
              total = r == first ? from[r * width + c] : std::max(total, from[r * width + c]);
              break;
            case TN_SEGMENT_SPREAD:
              each = from[s * width + c];
              break;
            case TN_SEGMENT_SHIFT:
              if (shifted >= static_cast<int64_t>(first) && shifted < static_cast<int64_t>(last))
                each = from[static_cast<size_t>(shifted) * width + c];
              break;
            case TN_SEGMENT_POSITION:
              each = static_cast<double>(r - first);
              break;
            case TN_SEGMENT_RANK:
              for (size_t other = first; other < last; ++other)
                each += from[other] > from[r] || (from[other] == from[r] && other < r) ? 1 : 0;
              break;
            default:
              break;
          }
        }
    }
  }

  void coalesce(const Node& node, size_t first) {
    const std::vector<double>& from = at(node.inputs[first]);
    const std::vector<double>& ids = at(node.inputs[first + 1]);
    std::vector<double>& out = at(node.outputs[0]);
    if (first == 0) out.assign(static_cast<size_t>(count_of(graph_.spec(node.outputs[0]).shape)), 0);
    const size_t width = out.size() / static_cast<size_t>(value_of(graph_.spec(node.outputs[0]).shape[0]));
    size_t segment = 0;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (node.inputs[first + 2] != kNoValue)
        while (static_cast<double>(i) >= at(node.inputs[first + 2])[segment + 1]) ++segment;
      const size_t row = node.inputs[first + 2] == kNoValue ? i : segment;
      for (size_t c = 0; c < width; ++c) out[static_cast<size_t>(ids[i]) * width + c] += from[row * width + c];
    }
  }

  void gemm(const Node& node) {
    const Shape& a = graph_.spec(node.inputs[0]).shape;
    const Shape& c = graph_.spec(node.outputs[0]).shape;
    const bool ta = (node.flags & TN_TRANSPOSE_A) != 0;
    const bool tb = (node.flags & TN_TRANSPOSE_B) != 0;
    const auto m = static_cast<size_t>(value_of(c[c.size() - 2]));
    const auto n = static_cast<size_t>(value_of(c[c.size() - 1]));
    const auto k = static_cast<size_t>(value_of(a[a.size() - (ta ? 2 : 1)]));
    std::vector<double>& out = at(node.outputs[0]);
    out.assign(static_cast<size_t>(count_of(c)), 0);
    for (size_t batch = 0; batch < out.size() / (m * n); ++batch) {
      const double* x = at(node.inputs[0]).data() + batch * m * k;
      const double* y = at(node.inputs[1]).data() + batch * k * n;
      for (size_t i = 0; i < m; ++i)
        for (size_t j = 0; j < n; ++j) {
          double sum = 0;
          for (size_t l = 0; l < k; ++l) sum += x[ta ? l * m + i : i * k + l] * y[tb ? j * k + l : l * n + j];
          out[batch * m * n + i * n + j] = node.alpha * sum;
        }
    }
  }

  void rows(const Node& node) {
    const bool scatter = node.primitive == Primitive::kScatterAdd;
    const std::vector<double>& from = at(node.inputs[0]);
    const std::vector<double>& ids = at(node.inputs[1]);
    std::vector<double>& out = at(node.outputs[0]);
    out.assign(static_cast<size_t>(count_of(graph_.spec(node.outputs[0]).shape)), 0);
    const size_t width = (scatter ? from.size() : out.size()) / ids.size();
    for (size_t i = 0; i < ids.size(); ++i)
      for (size_t c = 0; c < width; ++c) {
        const size_t row = static_cast<size_t>(ids[i]) * width + c;
        if (scatter)
          out[row] += from[i * width + c];
        else
          out[i * width + c] = from[row];
      }
  }

  void move(const Node& node) {
    const auto steps = [&](ValueId value) {
      const Shape& shape = graph_.spec(value).shape;
      std::vector<size_t> result(shape.size(), 1);
      for (size_t i = shape.size(); i-- > 1;) result[i - 1] = result[i] * static_cast<size_t>(value_of(shape[i]));
      return result;
    };
    const std::vector<size_t> to = steps(node.outputs[0]);
    std::vector<double>& out = at(node.outputs[0]);
    out.assign(static_cast<size_t>(count_of(graph_.spec(node.outputs[0]).shape)), 0);
    for (const MovePart& part : node.move->parts) {
      const std::vector<size_t> from = steps(node.inputs[part.input]);
      for (int64_t n = 0; n < count_of(part.box); ++n) {
        size_t source = 0, target = 0;
        for (size_t i = part.box.size(), rest = static_cast<size_t>(n); i-- > 0;) {
          const auto size = static_cast<size_t>(value_of(part.box[i]));
          const auto axis = static_cast<size_t>(part.axes[i]);
          source += (static_cast<size_t>(part.from[i]) + rest % size) * from[i];
          target += (static_cast<size_t>(part.to[axis]) + rest % size) * to[axis];
          rest /= size;
        }
        out[target] = at(node.inputs[part.input])[source];
      }
    }
  }

  const Graph& graph_;

 public:
  std::vector<std::vector<double>> values;
};

Spec f64(const Shape& shape) { return {TN_F64, shape, TN_DENSE, 0, {}}; }
Dim fixed(int64_t n) { return tn_dim_constant(n); }
Dim samples() { return tn_dim_symbol(TN_SYMBOL_SAMPLES); }

struct Built {
  Graph graph;
  std::vector<ValueId> inputs;  // floats from outside
  ValueId ids = kNoValue;       // integers from outside, below 3
  ValueId row_ids = kNoValue;   // the same, one for each row
  ValueId offsets = kNoValue;   // of the sequences, one of them empty
  ValueId output = kNoValue;
  std::set<ValueId> by_rows;  // inputs whose gradients are rows

  // The dimension of rows, with its sequences.
  Dim rows() {
    constexpr int32_t kSymbol = TN_SYMBOL_FIRST_ROWS;
    if (offsets == kNoValue) {
      Dim ends = tn_dim_symbol(TN_SYMBOL_SAMPLES);
      ends.offset = 1;
      offsets = graph.add_external({TN_I64, {ends}, TN_DENSE, 0, {}}, "offsets");
      graph.rows[kSymbol] = {tn_dim_symbol(TN_SYMBOL_SAMPLES), offsets};
    }
    return tn_dim_symbol(kSymbol);
  }
};

std::vector<std::vector<double>> fill(const Built& built) {
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

// The weighted sum of the output.
double run(const Built& built, const std::vector<std::vector<double>>& inputs, const std::vector<double>& weights) {
  Interpreter interpreter(built.graph);
  std::copy(inputs.begin(), inputs.end(), interpreter.values.begin());
  interpreter.run();
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i)
    sum += weights[i] * interpreter.values[static_cast<size_t>(built.output)][i];
  return sum;
}

void check(Built built) {
  built.graph.layers = {"layer"};
  const std::vector<std::vector<double>> inputs = fill(built);
  std::vector<double> weights(static_cast<size_t>(count_of(built.graph.spec(built.output).shape)));
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = 0.5 + 0.1 * static_cast<double>(i % 7);

  Graph graph = built.graph;
  const ValueId seed = graph.add_external(graph.spec(built.output), "seed");
  const auto gradients = differentiate(graph, {{built.output, seed}}, built.inputs, TN_F64, built.by_rows);
  const auto derive = [&](const Graph& of) {
    Interpreter interpreter(of);
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

// Sums, maxima and copies along sequences, one of them empty.
TEST(GraphGradient, Segments) {
  for (const int32_t op : {TN_SEGMENT_SUM, TN_SEGMENT_MAX, TN_SEGMENT_SPREAD, TN_SEGMENT_SHIFT}) {
    SCOPED_TRACE(op);
    Built built;
    const Dim rows = built.rows();
    const Dim first = op == TN_SEGMENT_SPREAD ? samples() : rows;
    const ValueId x = built.graph.add_external(f64({first, fixed(2), fixed(2)}), "x");
    built.inputs = {x};
    built.output = GraphWriter(built.graph, 0, false, TN_F64).segment(op, x, rows, -1);
    check(std::move(built));
  }
}

TEST(GraphGradient, SegmentsNameBothShapes) {
  Built built;
  const Dim rows = built.rows();
  const ValueId x = built.graph.add_external(f64({samples(), fixed(2)}), "x");
  GraphWriter writer(built.graph, 0, false, TN_F64);
  EXPECT_THROW(writer.segment(TN_SEGMENT_SUM, x, rows, 0), Error);
  EXPECT_THROW(writer.segment(TN_SEGMENT_SUM, kNoValue, rows, 0), Error);
  EXPECT_THROW(writer.segment(TN_SEGMENT_SPREAD, x, fixed(3), 0), Error);
  EXPECT_THROW(writer.segment(77, x, rows, 0), Error);
}

// A table that is read through gathers alone gets its gradient as rows; what a segment spreads is not written out.
TEST(GraphGradient, Rows) {
  Built built;
  const Dim rows = built.rows();
  const ValueId table = built.graph.add_external(f64({fixed(4), fixed(3)}), "table");
  built.ids = built.graph.add_external({TN_I64, {samples()}, TN_DENSE, 0, {}}, "ids");
  built.row_ids = built.graph.add_external({TN_I64, {rows}, TN_DENSE, 0, {}}, "row_ids");
  built.inputs = {table};
  built.by_rows = {table};
  GraphWriter writer(built.graph, 0, false, TN_F64);
  const ValueId bags = writer.segment(TN_SEGMENT_SUM, writer.gather(table, built.row_ids), rows, 0);
  ProgramWriter product;
  product.output(product.apply(TN_OP_MUL, product.input(TN_FULL), product.input(TN_FULL)));
  built.output =
      writer.pointwise(std::make_shared<Program>(product.finish()), {bags, writer.gather(table, built.ids)}, 1)[0];

  Graph graph = built.graph;
  const ValueId seed = graph.add_external(graph.spec(built.output), "seed");
  const ValueId gradient = differentiate(graph, {{built.output, seed}}, {table}, TN_F64, {table}).at(table);
  ASSERT_EQ(graph.spec(gradient).storage, TN_ROWS);
  fuse(graph, {gradient});
  const Node& last = graph.nodes.back();
  ASSERT_EQ(last.primitive, Primitive::kCoalesce);
  ASSERT_EQ(last.inputs.size(), 6U);
  EXPECT_EQ(std::count(last.inputs.begin(), last.inputs.end(), built.offsets), 1);
  EXPECT_TRUE(std::none_of(graph.nodes.begin(), graph.nodes.end(),
                           [](const Node& node) { return node.backward && node.primitive == Primitive::kSegment; }));
  check(std::move(built));
}

// With a product on the same table the whole gradient is dense.
TEST(GraphGradient, RowsAndDense) {
  Built built;
  const Dim rows = built.rows();
  const ValueId table = built.graph.add_external(f64({fixed(3), fixed(3)}), "table");
  built.row_ids = built.graph.add_external({TN_I64, {rows}, TN_DENSE, 0, {}}, "row_ids");
  built.inputs = {table};
  built.by_rows = {table};
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

// bias, activation and a row reduction one after another become one program; what is between is not stored.
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

// A node may only move up to where everything it reads exists.
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
  EXPECT_EQ(graph.nodes[1].primitive, Primitive::kGemm);
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
}  // namespace tenon

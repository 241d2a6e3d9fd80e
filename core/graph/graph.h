// The primitive graph: what a machine computes, as data. Nodes are primitives in an order that can be run; values
// are tensors. Layers record into it, differentiate appends to it, the planner reads it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/builder.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/program.h"
#include "core/shape.h"

namespace tenon {

using ValueId = int32_t;  // -1: none
constexpr ValueId kNoValue = -1;

struct GraphValue {
  Spec spec;
  int32_t producer = -1;        // node; -1: comes from outside (a feed, a parameter, a scalar)
  ValueId alias_of = kNoValue;  // a view shares the memory of this value
  std::string name;             // for people: "hidden", "hidden.weight"
};

// The operation of a node is one of the following, each with what it needs beside inputs and outputs.

// A program over a grid: the first `leading` dimensions of the whole shape are its rows.
struct Pointwise {
  std::shared_ptr<const Program> program;
  std::shared_ptr<const Program> author_gradient;  // or null
  Dim rows = tn_dim_constant(1), columns = tn_dim_constant(1);
  Shape whole;
  int32_t leading = 0;
};

// C = alpha op(A) op(B). With an epilogue the inputs are A, B and those of its program without number `product`, which
// is C; the outputs are C and the program's.
struct Gemm {
  uint32_t flags = 0;  // TN_TRANSPOSE_*
  double alpha = 1;
  std::optional<Pointwise> epilogue;
  int32_t product = -1;
};

// Inputs are a table and ids; of a bag also offsets, by which the rows are summed.
struct Gather {};
struct ScatterAdd {};

// A box that is copied: tn_move_part.
struct MovePart {
  uint32_t input = 0;             // among the node's
  Shape box;                      // in the order of the input's dimensions, like `from`
  std::vector<int64_t> from, to;  // where it begins in the input and in the output
  std::vector<int32_t> axes;      // the output's dimension that each of the input's becomes
};
struct Move {
  std::vector<MovePart> parts;
  bool fill = false;  // the rest of the output is zero
};

// The output is the input in another shape, in the same memory.
struct View {};

// A primitive over segments: TN_SEGMENT_*. Inputs are the value, or kNoValue, and the offsets.
struct Segment {
  int32_t op = 0;
  Dim rows = tn_dim_constant(0);
  int64_t by = 0;
};

// Three inputs for each contribution: values, ids, offsets or kNoValue. The output is TN_ROWS.
struct Coalesce {};

// A native kernel inside the graph. The graph carries it along; the host knows its meaning.
struct NativeCall {
  std::shared_ptr<const void> site;  // what the host needs to prepare the call
  uint64_t backward_inputs = 0;      // layer inputs and parameters that backward reads, one bit each
  uint64_t backward_outputs = 0;
  bool differentiable = false;
};

using Operation = std::variant<Pointwise, Gemm, Gather, ScatterAdd, Move, View, Segment, Coalesce, NativeCall>;
[[nodiscard]] const char* primitive_name(const Operation& operation);

struct Node {
  Operation operation;
  std::vector<ValueId> inputs;   // kNoValue where an optional operand is absent
  std::vector<ValueId> outputs;  // kNoValue where nothing is requested
  int32_t layer = -1;            // which layer it serves: index into Graph::layers
  std::vector<int32_t> fused;    // layers of the nodes that were joined into this one, its own first; else empty
  bool backward = false;

  template <typename T>
  [[nodiscard]] bool is() const {
    return std::holds_alternative<T>(operation);
  }
  // Null where it is another operation.
  template <typename T>
  [[nodiscard]] const T* as() const {
    return std::get_if<T>(&operation);
  }
  template <typename T>
  [[nodiscard]] T* as() {
    return std::get_if<T>(&operation);
  }
  // The program that it runs: of a pointwise node, or of a gemm's epilogue; else null.
  [[nodiscard]] const Pointwise* pointwise() const;

  // All layers that it serves, its own first.
  [[nodiscard]] std::vector<int32_t> served() const { return fused.empty() ? std::vector<int32_t>{layer} : fused; }
  // Serves the layers of `other` as well.
  void serve(const Node& other);
};

// A dimension of rows: what its sequences lie in, and where each begins and ends.
struct RowsOf {
  Dim outer = tn_dim_constant(0);
  ValueId offsets = kNoValue;  // int64 [outer + 1]
};

struct Graph {
  std::vector<GraphValue> values;
  std::vector<Node> nodes;
  std::vector<std::string> layers;  // names, for people
  std::map<int32_t, RowsOf> rows;   // by symbol

  [[nodiscard]] const Spec& spec(ValueId value) const { return values[static_cast<size_t>(value)].spec; }
  // The spec of a value with what its rows lie in, where they lie in sequences.
  [[nodiscard]] Spec in_sequences(ValueId value) const;
  // The value whose memory this one is.
  [[nodiscard]] ValueId root(ValueId value) const;
  // Makes every value know its node, after nodes have come, gone or moved.
  void renumber();

  ValueId add_external(Spec spec, std::string name);
  ValueId add_value(Spec spec, int32_t producer, std::string name = {});
};

// Appends primitives to a graph, checking shapes. Every function throws TN_INVALID with both shapes.
class GraphWriter {
 public:
  // New nodes belong to layer number `layer`.
  GraphWriter(Graph& graph, int32_t layer, bool backward, tn_dtype compute)
      : graph_(graph), layer_(layer), backward_(backward), compute_(compute) {}

  ValueId gemm(ValueId a, ValueId b, uint32_t flags, double alpha);
  std::vector<ValueId> pointwise(const std::shared_ptr<const Program>& program, const std::vector<ValueId>& inputs,
                                 int32_t leading, std::shared_ptr<const Program> author_gradient = nullptr);
  // The same over a grid that is already known: for gradients, whose operands need not have the whole shape.
  std::vector<ValueId> pointwise_on(const std::shared_ptr<const Program>& program, const std::vector<ValueId>& inputs,
                                    const Shape& whole, int32_t leading);
  ValueId gather(ValueId table, ValueId ids);
  ValueId scatter_add(ValueId rows, ValueId ids, const Dim& height);
  ValueId concat(const std::vector<ValueId>& values, int32_t axis);
  ValueId slice(ValueId value, int32_t axis, int64_t start, int64_t length);
  ValueId pad(ValueId value, int32_t axis, int64_t before, int64_t after);
  ValueId transpose(ValueId value, const std::vector<int32_t>& axes);
  // The gradient of `input`, of which a move copied `part`, from that of the move's output; zero elsewhere.
  ValueId move_back(const MovePart& part, ValueId input, ValueId gradient);
  ValueId view(ValueId value, const Shape& shape);
  ValueId segment(int32_t op, ValueId value, const Dim& rows, int64_t by);
  // What contributes to some rows of a value, as one TN_ROWS value of its shape.
  struct Contribution {
    ValueId values, ids, offsets;  // as in tn_rows_table
  };
  ValueId coalesce(const std::vector<Contribution>& contributions, const Spec& whole);
  // x converted to the compute type: scale * x + offset.
  ValueId convert(ValueId value, double scale, double offset);
  // layers: all that the kernel computes, where they are several; outputs that nobody reads then become kNoValue.
  std::vector<ValueId> native(NativeCall call, const std::vector<ValueId>& inputs, const std::vector<Spec>& outputs,
                              const std::vector<int32_t>& layers = {});

 private:
  void append(Operation operation, std::vector<ValueId> inputs);
  ValueId output(Spec spec);
  ValueId move(Move move, std::vector<ValueId> inputs, Shape shape);

  Graph& graph_;
  int32_t layer_;
  bool backward_;
  tn_dtype compute_;
};

}  // namespace tenon

// The primitive graph: the computation of a machine as data. SPDX-License-Identifier: Apache-2.0
//
// Nodes are primitives in execution order; values are tensors. Layers record nodes, differentiate appends the nodes of
// backward, passes fuse nodes, and the host prepares a call for each node.
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

namespace tenon::core {

using ValueId = int32_t;  // -1: none
constexpr ValueId kNoValue = -1;
// Returns the place of a value in Graph::values and lists beside it.
[[nodiscard]] inline size_t at(ValueId value) { return static_cast<size_t>(value); }

// Where a step of a loop finds a value that lies in another: in the states of a memory, or kPrefix, at the first rows
// of whole sequences in the order of the steps.
enum class StepPlace : uint8_t {
  kNone,
  kOfStep,
  kBefore /* of the step before: the initial value of the first */,
  kPrefix
};

struct GraphValue {
  Spec spec;
  int32_t producer = -1;               // number of the node; -1: external (a feed, a parameter, a scalar)
  ValueId alias_of = kNoValue;         // of a view: the value whose memory it shares
  std::string name;                    // for messages: "hidden", "hidden.weight"
  StepPlace place = StepPlace::kNone;  // not kNone: it is a view of the value where it lies
};

class Differentiator;
struct Node;

// The operation of a node is one of the following, with its properties besides inputs and outputs. `derive` adds to the
// gradients of the inputs of a node with this operation, at least one of whose outputs has a gradient.

// A program over a grid. `whole` is the shape of FULL operands; the grid has as many rows as the product of its first
// `leading` dimensions, and as many columns as the product of the others.
struct Pointwise {
  static constexpr const char* kName = "pointwise";
  std::shared_ptr<const Program> program;
  std::shared_ptr<const Program> author_gradient;  // null: the host derives the gradient
  Dim rows = tn_dim_constant(1), columns = tn_dim_constant(1);
  Shape whole;
  int32_t leading = 0;
  void derive(Differentiator& gradients, const Node& node) const;
};

// C = alpha op(A) op(B).
struct Gemm {
  static constexpr const char* kName = "gemm";
  uint32_t flags = 0;  // TN_TRANSPOSE_*
  double alpha = 1;
  bool packed = false;  // the second input is what a Pack made of B
  void derive(Differentiator& gradients, const Node& node) const;
};

// B of a product in the form in which the device reads it fastest. Input: B. Output: bytes. Of pack_operands.
struct Pack {
  static constexpr const char* kName = "pack";
  uint32_t flags = 0;  // of the product
  void derive(Differentiator& gradients, const Node& node) const;
};

// Inputs: table, ids; of an embedding bag also the offsets of the segments over which the rows are summed.
struct Gather {
  static constexpr const char* kName = "gather";
  ValueId inverse = kNoValue;  // if the ids are a permutation: the opposite one
  void derive(Differentiator& gradients, const Node& node) const;
};
// A product of which A, B or both are rows of tables: the rows of its matrices, as these are stored, one matrix after
// the other, are rows of the table by ids. Inputs: A or its table, B or its table, the ids of A, those of B; kNoValue
// for the ids of a matrix itself. Of join_gathers.
struct GatherGemm {
  static constexpr const char* kName = "gather_gemm";
  Gemm gemm;
  void derive(Differentiator& gradients, const Node& node) const;
};
// Inputs: rows, ids.
struct ScatterAdd {
  static constexpr const char* kName = "scatter_add";
  void derive(Differentiator& gradients, const Node& node) const;
};

// A box that a move copies, as in tn_move_part.
struct MovePart {
  uint32_t input = 0;             // index among the inputs of the node
  Shape box;                      // in the order of the input's dimensions, like `from`
  std::vector<int64_t> from, to;  // first index of the box in the input and in the output
  std::vector<int32_t> axes;      // per dimension of the input: the dimension of the output
};
struct Move {
  static constexpr const char* kName = "move";
  std::vector<MovePart> parts;
  bool fill = false;  // the boxes do not cover the output; the rest is zero
  void derive(Differentiator& gradients, const Node& node) const;
};

// The output is the input in another shape, in the same memory.
struct View {
  static constexpr const char* kName = "view";
  void derive(Differentiator& gradients, const Node& node) const;
};

// A primitive over segments. Inputs: the value (kNoValue if the op takes none), offsets.
struct Segment {
  static constexpr const char* kName = "segment";
  int32_t op = 0;                 // TN_SEGMENT_*
  Dim rows = tn_dim_constant(0);  // the ragged dimension
  int64_t by = 0;                 // of TN_SEGMENT_SHIFT
  void derive(Differentiator& gradients, const Node& node) const;
};

// The positions of the first `count` elements of each row in sorted order. Input: values.
struct Argsort {
  static constexpr const char* kName = "argsort";
  uint32_t flags = 0;  // TN_SORT_*
  void derive(Differentiator& gradients, const Node& node) const;
};
// Sums along the last dimension. Input: values.
struct PrefixSum {
  static constexpr const char* kName = "prefix_sum";
  uint32_t flags = 0;  // TN_SUM_*
  void derive(Differentiator& gradients, const Node& node) const;
};

// A convolution, TN_CONV_*; inputs as in tenon/window.h.
struct Conv {
  static constexpr const char* kName = "conv";
  int32_t op = TN_CONV_RESULTS;
  tn_window window = {};
  int64_t groups = 1;
  void derive(Differentiator& gradients, const Node& node) const;
};
// Pooling, TN_POOL_*; inputs and outputs as in tenon/window.h.
struct Pool {
  static constexpr const char* kName = "pool";
  int32_t op = TN_POOL_SUM;
  tn_window window = {};
  void derive(Differentiator& gradients, const Node& node) const;
};
struct Resize {
  static constexpr const char* kName = "resize";
  tn_resize how = {};
  void derive(Differentiator& gradients, const Node& node) const;
};

// The order of the steps of scans over a ragged dimension, StepOrder of the graph. Inputs: the offsets of the
// sequences; of a nested order also sequence_of_step of the order around it. Outputs: the tables of the order.
struct StepTables {
  static constexpr const char* kName = "step_tables";
  int32_t order = -1;
  void derive(Differentiator& gradients, const Node& node) const;
};
// The rows of further sequences that the steps of an order see, StepRows of the graph. Inputs: the offsets of the
// sequences outside, and for each step the number of that which it sees. Outputs: the tables.
struct StepRowTables {
  static constexpr const char* kName = "step_rows";
  int32_t number = -1;
  void derive(Differentiator& gradients, const Node& node) const;
};
// A memory of a loop. Inputs: the value at the first step of each sequence (kNoValue: zeros), and what every step
// leaves to the next one, which later nodes compute. Outputs: what each step finds; after arrange_loops also the
// states.
struct Memory {
  static constexpr const char* kName = "memory";
  int32_t loop = -1;
  void derive(Differentiator& gradients, const Node& node) const;
};
// What the last step of each sequence left in a memory. Inputs: what every step leaves, and the initial value as in
// Memory. It comes after all nodes of the loop, and becomes a gather in arrange_loops.
struct LastStep {
  static constexpr const char* kName = "last_step";
  int32_t loop = -1;
  ValueId memory = kNoValue;  // output of the Memory
  void derive(Differentiator& gradients, const Node& node) const;
};

// Three inputs per contribution: values, ids, offsets (or kNoValue). The output is TN_ROW_SPARSE. Of products, five:
// also the weights by which the ids multiply the rows of the values, and the ids by which these are rows of a table, as
// in tn_product_part; kNoValue if there are none.
struct Coalesce {
  static constexpr const char* kName = "coalesce";
  std::vector<double> alphas;  // per contribution: its factor beside the weights; empty unless of products
  [[nodiscard]] size_t stride() const { return alphas.empty() ? 3 : 5; }
  void derive(Differentiator& gradients, const Node& node) const;
};

// The numbers of the operands of a native kernel in forward, by class, in their order (tenon/kernel.h).
struct NativeOperands {
  size_t inputs = 0, parameters = 0, buffers = 0, carried = 0;  // and as many next values
  size_t outputs = 0, made_rows = 0 /* offsets and count of each */, saved = 0;
  [[nodiscard]] size_t all_in() const { return inputs + parameters + buffers + carried; }
  [[nodiscard]] size_t first_saved() const { return outputs + buffers + carried + 2 * made_rows; }
  [[nodiscard]] size_t all_out() const { return first_saved() + saved; }
};

// A native kernel as a node. Its site is opaque here: the host makes it and prepares the call from it.
struct NativeCall {
  static constexpr const char* kName = "native";
  std::shared_ptr<void> site;
  NativeOperands operands;
  std::vector<uint8_t> reads_in;   // per input of forward: 1: backward reads it
  std::vector<uint8_t> reads_out;  // per layer output: 1: backward reads it
  std::vector<int32_t> in_place;   // of the node's phase: per output the input whose memory it may share, or -1
  std::vector<int32_t>
      backward_in_place;  // per layer input: the layer output whose gradient's memory its gradient may share
  std::map<size_t, Dim> row_gradients;  // by parameter: the number of rows, if its gradient is written as rows
  uint64_t draw = 0;                    // the first of its draw numbers
  std::string no_gradient;              // if there is no backward: the reason
  void derive(Differentiator& gradients, const Node& node) const;
};

using Operation =
    std::variant<Pointwise, Gemm, Pack, Gather, GatherGemm, ScatterAdd, Move, View, Segment, Argsort, PrefixSum, Conv,
                 Pool, Resize, StepTables, StepRowTables, Memory, LastStep, Coalesce, NativeCall>;
[[nodiscard]] inline const char* primitive_name(const Operation& operation) {
  return std::visit([](const auto& each) { return each.kName; }, operation);
}

// A program that a product runs over its result: a gemm, or a convolution whose result has samples. The inputs of the
// node are those of the product, then those of the program without number `product`, which is the result; the outputs
// are the result, then those of the program.
struct Epilogue {
  Pointwise pointwise;
  int32_t product = 0;
};

struct Node {
  Operation operation;
  std::optional<Epilogue> epilogue;  // of a product
  std::vector<ValueId> inputs;       // kNoValue if an optional operand is absent
  std::vector<ValueId> outputs;      // kNoValue if an output is not requested
  int32_t layer = -1;                // the layer that it computes: index into Graph::layers; -1: none
  std::vector<int32_t> fused;        // if it computes several layers: all of them, `layer` first; else empty
  bool backward = false;
  bool once = false;  // it reads constant values alone and runs before the first forward after they changed
  int32_t loop = -1;  // that it runs in, step by step: index into Graph::loops; -1: it runs once. Of arrange_loops.

  template <typename T>
  [[nodiscard]] bool is() const {
    return std::holds_alternative<T>(operation);
  }
  // Null if the node has another operation.
  template <typename T>
  [[nodiscard]] const T* as() const {
    return std::get_if<T>(&operation);
  }
  template <typename T>
  [[nodiscard]] T* as() {
    return std::get_if<T>(&operation);
  }
  // Whether the node is a product that may have an epilogue.
  [[nodiscard]] bool is_product() const;
  // Returns the program of a pointwise node or of an epilogue; else null.
  [[nodiscard]] const Pointwise* pointwise() const;

  // Returns all layers that the node computes, `layer` first.
  [[nodiscard]] std::vector<int32_t> served() const { return fused.empty() ? std::vector<int32_t>{layer} : fused; }
  // Adds the layers of `other`, which is fused into this node.
  void serve(const Node& other);
};

// A ragged dimension: how many sequences (segments) it has, and where each begins and ends.
struct RaggedDim {
  Dim outer = tn_dim_constant(0);  // number of sequences: the samples, or another ragged dimension
  ValueId offsets = kNoValue;      // int64 [outer + 1]
  ValueId count = kNoValue;        // int64 [1]: the number of rows, if a call writes it; else the host knows it
};

// The order in which scans go through the sequences of a ragged dimension. They run step by step; the sequences that
// still run at a step are the first ones, since they are ordered by length, longest first, equal ones by number. The
// dimension `steps` has an element for each step of each sequence, in that order; it has as many as there are rows.
// `states` has one for each step, then one for the initial value of each sequence.
//
// A nested order is that of sequences which the steps of another order see, StepRows::rows, for loops that run within
// these steps: it orders the sequences of each outer step apart from those of the others, so that the elements of
// `steps` that belong to an outer step are consecutive.
struct StepOrder {
  int32_t rows = 0;  // symbol of the ragged dimension
  bool reverse = false, nested = false;
  Dim steps = tn_dim_constant(0), states = tn_dim_constant(0);
  // Tables, int64, outputs of StepTables.
  ValueId row_of_step = kNoValue;       // [steps]
  ValueId step_of_row = kNoValue;       // [rows]: the inverse
  ValueId sequence_of_step = kNoValue;  // [steps]
  ValueId before = kNoValue;            // [steps]: the state that the step before left
  ValueId last = kNoValue;              // [sequences]: the state that the last step left
  ValueId initial = kNoValue;           // [sequences]: the initial state
};
// The rows that the steps of an order see of other sequences: a ragged dimension with a sequence for each element of
// `steps`. Either the sequences are those of the order, and every step sees the whole one that belongs to its sequence;
// or they lie in the rows of the order, and a step sees the one that is its row.
struct StepRows {
  int32_t order = -1;             // index into Graph::orders
  int32_t source = 0;             // symbol of the ragged dimension outside
  bool whole = false;             // every step sees the whole sequence
  Dim rows = tn_dim_constant(0);  // over all steps
  int32_t layer = -1;             // that reads such rows first, for messages: index into Graph::layers
  ValueId offsets = kNoValue;     // int64 [steps + 1]
  // Tables, int64: the rows outside in the order in which steps see them, and the inverse. If `whole`, a step sees the
  // first of these rows, and `place` has their numbers for all steps.
  ValueId row_of_place = kNoValue;  // [rows of the source]
  ValueId place_of_row = kNoValue;  // [rows of the source]
  ValueId place = kNoValue;         // [rows], kNoValue unless `whole`
};
// Nodes that run step by step. Backward loops run from the last steps to the first: their initial values are those of
// the last steps, and what they find at last is that of the first.
struct Loop {
  int32_t order = -1;  // index into Graph::orders
  bool backward = false;
  int32_t around = -1;  // the loop within whose steps it runs; -1: none. Of arrange_loops.
};

struct Graph {
  std::vector<GraphValue> values;
  std::vector<Node> nodes;
  std::vector<StepOrder> orders;
  std::vector<StepRows> step_rows;
  std::vector<Loop> loops;
  std::vector<std::string> layers;    // names, for messages
  std::map<int32_t, RaggedDim> rows;  // the ragged dimensions, by symbol
  tn_dtype compute = TN_F32;          // the type in which programs compute floats
  uint32_t precision = 0;             // TN_PRECISION_*, of products

  [[nodiscard]] const Spec& spec(ValueId value) const { return values[static_cast<size_t>(value)].spec; }
  // Returns the spec of a value, with storage, levels and outer dimensions filled in if its first dimension is ragged.
  [[nodiscard]] Spec in_sequences(ValueId value) const;
  // Returns the value that owns the memory of `value`: itself, or the one that it is a view of.
  [[nodiscard]] ValueId root(ValueId value) const;
  // Recomputes GraphValue::producer after nodes were added, removed or reordered.
  void renumber();

  ValueId add_external(Spec spec, std::string name);
  ValueId add_value(Spec spec, int32_t producer, std::string name = {});
};

// Returns the shape of an operand of a Gemm or GatherGemm, 0: A, 1: B, as it is stored: [batch..., rows, columns].
[[nodiscard]] Shape matrix_shape(const Graph& graph, const Node& product, size_t operand);

// Appends primitives to a graph. Functions check the shapes of their operands, and errors name these shapes. The files
// of the primitives state which shapes each takes and returns.
class GraphWriter {
 public:
  // New nodes belong to layer number `layer`; outputs of type TN_COMPUTE get the type `compute`.
  GraphWriter(Graph& graph, int32_t layer, bool backward, tn_dtype compute)
      : graph_(graph), layer_(layer), backward_(backward), compute_(compute) {}

  [[nodiscard]] tn_dtype compute() const { return compute_; }
  ValueId gemm(ValueId a, ValueId b, uint32_t flags, double alpha);
  std::vector<ValueId> pointwise(const std::shared_ptr<const Program>& program, const std::vector<ValueId>& inputs,
                                 int32_t leading, std::shared_ptr<const Program> author_gradient = nullptr);
  // The same over the grid of the shape `whole`: for gradients, whose operands need not include a FULL one.
  std::vector<ValueId> pointwise_on(const std::shared_ptr<const Program>& program, const std::vector<ValueId>& inputs,
                                    const Shape& whole, int32_t leading);
  ValueId gather(ValueId table, ValueId ids);
  ValueId scatter_add(ValueId rows, ValueId ids, const Dim& height);
  ValueId concat(const std::vector<ValueId>& values, int32_t axis);
  ValueId slice(ValueId value, int32_t axis, int64_t start, int64_t length);
  ValueId pad(ValueId value, int32_t axis, int64_t before, int64_t after);
  ValueId transpose(ValueId value, const std::vector<int32_t>& axes);
  // Returns the gradient of `input` from `gradient`, that of the output of a move which copied `part` of the input.
  // It is zero outside of the part.
  ValueId move_back(const MovePart& part, ValueId input, ValueId gradient);
  ValueId view(ValueId value, const Shape& shape);
  ValueId segment(int32_t op, ValueId value, const Dim& rows, int64_t by);
  // count: -1: all elements of a row.
  ValueId argsort(ValueId value, uint32_t flags, int64_t count);
  ValueId prefix_sum(ValueId value, uint32_t flags);
  ValueId conv(int32_t op, const tn_window& window, int64_t groups, ValueId a, ValueId b);
  // Returns the outputs: one, of a maximum two.
  std::vector<ValueId> pool(int32_t op, const tn_window& window, ValueId value, ValueId positions);
  ValueId resize(const tn_resize& how, ValueId value);

  // Returns the number of the order of steps through the sequences of `rows`; adds it if it is new, with the symbol
  // `free` and the one after it. nested: StepOrder::nested.
  int32_t step_order(const Dim& rows, bool reverse, bool nested, int32_t free);
  // The rows of sequences in the order of the steps, or for each step the value of its sequence.
  ValueId to_steps(ValueId value, int32_t order);
  // The rows of the sequences that steps see, [StepRows::rows, W...], where the sequences are those of the order or lie
  // in its rows. Adds StepRows if they are new, with the symbol `free`.
  ValueId to_step_rows(ValueId value, int32_t order, int32_t free);
  ValueId from_steps(ValueId value);
  // A memory of [shape...] for each sequence; initial: [sequences, shape...] or kNoValue.
  ValueId memory(int32_t loop, const Spec& shape, ValueId initial);
  // Completes a memory; after all nodes of the loop. Returns what its last steps left.
  ValueId end_memory(ValueId memory, ValueId next);
  // A contribution to the gradient of some rows of a table, as in tn_row_sparse_table.
  struct Contribution {
    ValueId values, ids, offsets;
  };
  // Sums contributions to the rows of a table of spec `whole` into one TN_ROW_SPARSE value of the same shape.
  ValueId coalesce(const std::vector<Contribution>& contributions, const Spec& whole);
  // Returns scale * x + offset in the compute type.
  ValueId convert(ValueId value, double scale, double offset);
  // layers: all layers that the kernel computes if there are several. fuse() sets unread outputs to kNoValue, except
  // the layer outputs of a single layer.
  std::vector<ValueId> native(NativeCall call, const std::vector<ValueId>& inputs, const std::vector<Spec>& outputs,
                              const std::vector<int32_t>& layers = {});

 private:
  void append(Operation operation, std::vector<ValueId> inputs);
  ValueId output(Spec spec);
  ValueId move(Move move, std::vector<ValueId> inputs, Shape shape);
  // Returns the number of StepRows; source: a ragged dimension.
  int32_t step_rows(const Dim& source, int32_t order, int32_t free);

  Graph& graph_;
  int32_t layer_;
  bool backward_;
  tn_dtype compute_;
};

}  // namespace tenon::core

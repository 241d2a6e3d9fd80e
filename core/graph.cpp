// SPDX-License-Identifier: Apache-2.0
#include "core/graph.h"

#include <algorithm>

#include "core/error.h"

namespace tenon {

const char* primitive_name(Primitive primitive) {
  switch (primitive) {
    case Primitive::kPointwise:
      return "pointwise";
    case Primitive::kGemm:
      return "gemm";
    case Primitive::kGather:
      return "gather";
    case Primitive::kScatterAdd:
      return "scatter_add";
    case Primitive::kMove:
      return "move";
    case Primitive::kView:
      return "view";
    case Primitive::kSegment:
      return "segment";
    case Primitive::kCoalesce:
      return "coalesce";
    case Primitive::kNative:
      return "native";
  }
  return "unknown";
}

ValueId Graph::root(ValueId value) const {
  while (values[static_cast<size_t>(value)].alias_of != kNoValue) value = values[static_cast<size_t>(value)].alias_of;
  return value;
}

void Node::serve(const Node& other) {
  std::vector<int32_t> all = served();
  for (const int32_t each : other.served())
    if (std::find(all.begin(), all.end(), each) == all.end()) all.push_back(each);
  if (all.size() > 1) fused = std::move(all);
}

void Graph::renumber() {
  for (GraphValue& value : values) value.producer = -1;
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const ValueId output : nodes[i].outputs)
      if (output != kNoValue) values[static_cast<size_t>(output)].producer = static_cast<int32_t>(i);
}

Spec Graph::in_sequences(ValueId value) const {
  Spec spec = this->spec(value);
  if (spec.shape.empty() || !is_rows(spec.shape[0])) return spec;
  spec.storage = TN_RAGGED;
  spec.outer.clear();
  for (Dim dim = spec.shape[0]; is_rows(dim);) {
    const auto found = rows.find(dim.symbol);
    if (found == rows.end()) break;
    dim = found->second.outer;
    spec.outer.push_back(dim);
  }
  spec.levels = static_cast<uint32_t>(spec.outer.size());
  return spec;
}

ValueId Graph::add_value(Spec spec, int32_t producer, std::string name) {
  values.push_back({std::move(spec), producer, kNoValue, std::move(name)});
  return static_cast<ValueId>(values.size() - 1);
}

ValueId Graph::add_external(Spec spec, std::string name) { return add_value(std::move(spec), -1, std::move(name)); }

Node& GraphWriter::append(Primitive primitive, std::vector<ValueId> inputs) {
  Node node;
  node.primitive = primitive;
  node.inputs = std::move(inputs);
  node.layer = layer_;
  node.backward = backward_;
  graph_.nodes.push_back(std::move(node));
  return graph_.nodes.back();
}

// A new value made by the node that was appended last.
ValueId GraphWriter::output(Spec spec) {
  const ValueId value = graph_.add_value(std::move(spec), static_cast<int32_t>(graph_.nodes.size() - 1));
  graph_.nodes.back().outputs.push_back(value);
  return value;
}

ValueId GraphWriter::gemm(ValueId a, ValueId b, uint32_t flags, double alpha) {
  const Spec& left = graph_.spec(a);
  const Spec& right = graph_.spec(b);
  const auto bad = [&](const char* why) {
    fail(TN_INVALID, "gemm of ", to_string(left), " and ", to_string(right), ": ", why);
  };
  const size_t rank = left.shape.size();
  if (rank < 2 || right.shape.size() != rank) bad("both need the same rank of at least 2");
  if (left.dtype != right.dtype || !is_float(left.dtype)) bad("both need the same float type");
  for (size_t i = 0; i + 2 < rank; ++i)
    if (!same(left.shape[i], right.shape[i])) bad("the batch dimensions differ");
  const bool ta = (flags & TN_TRANSPOSE_A) != 0;
  const bool tb = (flags & TN_TRANSPOSE_B) != 0;
  const Dim& m = left.shape[rank - (ta ? 1 : 2)];
  const Dim& k = left.shape[rank - (ta ? 2 : 1)];
  const Dim& k2 = right.shape[rank - (tb ? 1 : 2)];
  const Dim& n = right.shape[rank - (tb ? 2 : 1)];
  if (!same(k, k2)) bad("the inner dimensions differ");
  Spec result{left.dtype, Shape(left.shape.begin(), left.shape.end() - 2), TN_DENSE, 0, {}};
  result.shape.push_back(m);
  result.shape.push_back(n);
  Node& node = append(Primitive::kGemm, {a, b});
  node.flags = flags;
  node.alpha = alpha;
  return output(std::move(result));
}

namespace {

const char* extent_name(uint8_t extent) {
  constexpr const char* kNames[] = {"SCALAR", "PER_COLUMN", "PER_ROW", "FULL"};
  return kNames[extent];
}

Shape shape_of_extent(const Shape& whole, size_t leading, uint8_t extent) {
  const auto split = whole.begin() + static_cast<std::ptrdiff_t>(leading);
  switch (extent) {
    case TN_FULL:
      return whole;
    case TN_PER_ROW:
      return {whole.begin(), split};
    case TN_PER_COLUMN:
      return {split, whole.end()};
    default:
      return {};
  }
}

// Whether a tensor of `shape` can be read as `expected`: equal, or followed by ones.
bool reads_as(const Shape& shape, const Shape& expected) {
  if (shape.size() < expected.size()) return false;
  for (size_t i = 0; i < shape.size(); ++i)
    if (!same(shape[i], i < expected.size() ? expected[i] : tn_dim_constant(1))) return false;
  return true;
}

}  // namespace

std::vector<ValueId> GraphWriter::pointwise(const std::shared_ptr<const Program>& program,
                                            const std::vector<ValueId>& inputs, int32_t leading,
                                            std::shared_ptr<const Program> author_gradient) {
  if (leading < 0) fail(TN_INVALID, "pointwise: leading is ", leading);
  const auto lead = static_cast<size_t>(leading);
  const auto first_with = [&](uint8_t extent) -> const Shape* {
    for (size_t i = 0; i < inputs.size(); ++i)
      if (program->inputs[i].extent == extent) return &graph_.spec(inputs[i]).shape;
    return nullptr;
  };
  Shape whole;
  if (const Shape* full = first_with(TN_FULL)) {
    whole = *full;
  } else {
    if (const Shape* rows = first_with(TN_PER_ROW)) whole.assign(rows->begin(), rows->end());
    if (whole.size() > lead) whole.resize(lead);
    if (const Shape* columns = first_with(TN_PER_COLUMN)) whole.insert(whole.end(), columns->begin(), columns->end());
  }
  if (whole.size() < lead) fail(TN_INVALID, "pointwise: ", leading, " leading dimensions of ", to_string(whole));
  auto outputs = pointwise_on(program, inputs, whole, leading);
  graph_.nodes.back().author_gradient = std::move(author_gradient);
  return outputs;
}

std::vector<ValueId> GraphWriter::pointwise_on(const std::shared_ptr<const Program>& program,
                                               const std::vector<ValueId>& inputs, const Shape& whole,
                                               int32_t leading) {
  const auto lead = static_cast<size_t>(leading);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const tn_program_input& input = program->inputs[i];
    const Spec& spec = graph_.spec(inputs[i]);
    const Shape expected = shape_of_extent(whole, lead, input.extent);
    if (!reads_as(spec.shape, expected))
      fail(TN_INVALID, "pointwise input ", i, " (", extent_name(input.extent), "): expected ", to_string(expected),
           ", got ", to_string(spec.shape));
    const bool fits = input.kind == TN_FLOAT || (input.kind == TN_INT && !is_float(spec.dtype)) ||
                      (input.kind == TN_LOGICAL && spec.dtype == TN_BOOL);
    if (!fits) fail(TN_INVALID, "pointwise input ", i, ": element type ", dtype_name(spec.dtype), " does not fit");
  }
  Node& node = append(Primitive::kPointwise, inputs);
  node.rows = elements(whole.data(), lead);
  node.columns = elements(whole.data() + lead, whole.size() - lead);
  node.whole = whole;
  node.leading = leading;
  node.program = program;
  std::vector<ValueId> outputs;
  for (size_t i = 0; i < program->outputs.size(); ++i) {
    const tn_dtype dtype = program->outputs[i].dtype == TN_COMPUTE ? compute_ : program->outputs[i].dtype;
    outputs.push_back(output({dtype, shape_of_extent(whole, lead, program->output_extent(i)), TN_DENSE, 0, {}}));
  }
  return outputs;
}

ValueId GraphWriter::gather(ValueId table, ValueId ids) {
  const Spec& rows = graph_.spec(table);
  const Spec& index = graph_.spec(ids);
  if (rows.shape.empty()) fail(TN_INVALID, "gather from ", to_string(rows));
  if (index.dtype != TN_I32 && index.dtype != TN_I64)
    fail(TN_INVALID, "gather: ids are ", to_string(index), "; expected int32 or int64");
  Spec result{rows.dtype, index.shape, TN_DENSE, 0, {}};
  result.shape.insert(result.shape.end(), rows.shape.begin() + 1, rows.shape.end());
  append(Primitive::kGather, {table, ids});
  return output(std::move(result));
}

ValueId GraphWriter::scatter_add(ValueId rows, ValueId ids, const Dim& height) {
  const Spec& given = graph_.spec(rows);
  const Spec& index = graph_.spec(ids);
  const size_t lead = index.shape.size();
  if (index.dtype != TN_I32 && index.dtype != TN_I64)
    fail(TN_INVALID, "scatter_add: ids are ", to_string(index), "; expected int32 or int64");
  if (given.shape.size() < lead || !std::equal(index.shape.begin(), index.shape.end(), given.shape.begin(),
                                               [](const Dim& a, const Dim& b) { return same(a, b); }))
    fail(TN_INVALID, "scatter_add of ", to_string(given), " by ids ", to_string(index));
  Spec result{given.dtype, {height}, TN_DENSE, 0, {}};
  result.shape.insert(result.shape.end(), given.shape.begin() + static_cast<std::ptrdiff_t>(lead), given.shape.end());
  append(Primitive::kScatterAdd, {rows, ids});
  return output(std::move(result));
}

ValueId GraphWriter::view(ValueId value, const Shape& shape) {
  const Spec& given = graph_.spec(value);
  if (!same(elements(given.shape), elements(shape)))
    fail(TN_INVALID, "a view of ", to_string(given.shape), " as ", to_string(shape), " changes the number of elements");
  if (same(given.shape, shape)) return value;
  Spec result = given;
  result.shape = shape;
  append(Primitive::kView, {value});
  const ValueId seen = output(std::move(result));
  graph_.values[static_cast<size_t>(seen)].alias_of = value;
  return seen;
}

ValueId GraphWriter::convert(ValueId value, double scale, double offset) {
  ProgramWriter writer;
  int32_t x = writer.input(TN_FULL);
  if (scale != 1) x = writer.apply(TN_OP_MUL, x, writer.constant(scale));
  if (offset != 0) x = writer.apply(TN_OP_ADD, x, writer.constant(offset));
  writer.output(x);
  return pointwise(std::make_shared<Program>(writer.finish()), {value}, graph_.spec(value).shape.empty() ? 0 : 1)[0];
}

std::vector<ValueId> GraphWriter::native(NativeCall call, const std::vector<ValueId>& inputs,
                                         const std::vector<Spec>& outputs, const std::vector<int32_t>& layers) {
  Node& node = append(Primitive::kNative, inputs);
  node.native = std::move(call);
  node.fused = layers;
  if (!layers.empty()) node.layer = layers.front();
  std::vector<ValueId> made;
  for (const Spec& spec : outputs) made.push_back(output(spec));
  return made;
}

}  // namespace tenon

// Primitives over the segments of ragged dimensions, and rows of tables. SPDX-License-Identifier: Apache-2.0
#include "core/error.h"
#include "core/graph.h"

namespace tenon {

ValueId GraphWriter::segment(int32_t op, ValueId value, const Dim& rows, int64_t by) {
  const auto known = graph_.rows.find(rows.symbol);
  if (known == graph_.rows.end() || rows.coefficient != 1 || rows.offset != 0)
    fail(TN_INVALID, "segment: ", to_string(rows), " is no dimension of rows");
  const RowsOf& of = known->second;
  const auto require = [&](const Dim& first) {
    if (value == kNoValue) fail(TN_INVALID, "segment: this operation needs a value");
    const Spec& spec = graph_.spec(value);
    if (spec.shape.empty() || !same(spec.shape[0], first))
      fail(TN_INVALID, "segment: expected a value of [", to_string(first), ", ...], got ", to_string(spec));
  };
  const auto with_first = [&](const Dim& first) {
    Spec result = graph_.spec(value);
    result.shape[0] = first;
    return result;
  };
  Spec result;
  switch (op) {
    case TN_SEGMENT_SUM:
    case TN_SEGMENT_MAX:
      require(rows);
      if (!is_float(graph_.spec(value).dtype))
        fail(TN_INVALID, "segment: expected floats, got ", to_string(graph_.spec(value)));
      result = with_first(of.outer);
      break;
    case TN_SEGMENT_SPREAD:
      require(of.outer);
      result = with_first(rows);
      break;
    case TN_SEGMENT_SHIFT:
      require(rows);
      result = graph_.spec(value);
      break;
    case TN_SEGMENT_RANK:
      require(rows);
      if (graph_.spec(value).shape.size() != 1 || !is_float(graph_.spec(value).dtype))
        fail(TN_INVALID, "segment: ranks are of one float for each row, got ", to_string(graph_.spec(value)));
      result = {TN_I64, {rows}, TN_DENSE, 0, {}};
      break;
    case TN_SEGMENT_POSITION:
      result = {TN_I64, {rows}, TN_DENSE, 0, {}};
      break;
    case TN_SEGMENT_LENGTH:
    case TN_SEGMENT_START:
      result = {TN_I64, {of.outer}, TN_DENSE, 0, {}};
      break;
    default:
      fail(TN_INVALID, "segment: no operation ", op);
  }
  const bool takes_none = op == TN_SEGMENT_POSITION || op == TN_SEGMENT_LENGTH || op == TN_SEGMENT_START;
  Node& node = append(Primitive::kSegment, {takes_none ? kNoValue : value, of.offsets});
  node.segment = {op, rows, by};
  return output(std::move(result));
}

ValueId GraphWriter::coalesce(const std::vector<Contribution>& contributions, const Spec& whole) {
  std::vector<ValueId> inputs;
  for (const Contribution& each : contributions) inputs.insert(inputs.end(), {each.values, each.ids, each.offsets});
  append(Primitive::kCoalesce, std::move(inputs));
  Spec result = whole;
  result.storage = TN_ROWS;
  return output(std::move(result));
}

}  // namespace tenon

// Rows of a table by their ids, and rows added to those of a table.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/error.h"
#include "core/graph/differentiator.h"

namespace tenon {

ValueId GraphWriter::gather(ValueId table, ValueId ids) {
  const Spec& rows = graph_.spec(table);
  const Spec& index = graph_.spec(ids);
  if (rows.shape.empty()) fail(TN_INVALID, "gather from ", to_string(rows));
  if (index.dtype != TN_I32 && index.dtype != TN_I64)
    fail(TN_INVALID, "gather: ids are ", to_string(index), "; expected int32 or int64");
  Spec result{rows.dtype, index.shape, TN_DENSE, 0, {}};
  result.shape.insert(result.shape.end(), rows.shape.begin() + 1, rows.shape.end());
  append(Gather(), {table, ids});
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
  append(ScatterAdd(), {rows, ids});
  return output(std::move(result));
}

void Differentiator::derive(const Node& node, const Gather& /*gather*/) {
  const ValueId table = node.inputs[0];
  if (!needed(table)) return;
  if (by_rows_.contains(table)) return add_rows(node);
  const Dim height = graph_.spec(table).shape[0];
  add(table, writer(node.layer).scatter_add(gradient(node.outputs[0]), node.inputs[1], height), node.layer);
}

void Differentiator::derive(const Node& node, const ScatterAdd& /*scatter*/) {
  if (!needed(node.inputs[0])) return;
  add(node.inputs[0], writer(node.layer).gather(gradient(node.outputs[0]), node.inputs[1]), node.layer);
}

}  // namespace tenon

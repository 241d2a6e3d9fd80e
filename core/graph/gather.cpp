// Gather and scatter_add: read rows of a table by ids, add rows to a table by ids.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/error.h"
#include "core/graph/differentiator.h"

namespace tenon::core {

// out[i, ...] = table[ids[i], ...]
//   table [V, W...], ids int32 or int64 [n...]; out [n..., W...]
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

// out[v, ...] = sum of rows[i, ...] over all i with ids[i] = v
//   rows [n..., W...], ids int32 or int64 [n...]; out [height, W...]
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

// dtable [V, W...] = gather(dout, inverse) if the ids are a permutation, else scatter_add(dout [n..., W...], ids
// [n...]), or a contribution to a row-sparse gradient.
void Gather::derive(Differentiator& gradients, const Node& node) const {
  const ValueId table = node.inputs[0];
  if (!gradients.needed(table)) return;
  if (inverse != kNoValue) {
    const ValueId back = gradients.writer(node.layer).gather(gradients.gradient(node.outputs[0]), inverse);
    return gradients.add(table, back, node.layer);
  }
  if (gradients.is_row_sparse(table)) return gradients.add_rows(node);
  gradients.add_rows(table, {gradients.gradient(node.outputs[0]), node.inputs[1], kNoValue}, node.layer);
}

// drows [n..., W...] = gather(dout [height, W...], ids [n...]).
void ScatterAdd::derive(Differentiator& gradients, const Node& node) const {
  if (!gradients.needed(node.inputs[0])) return;
  const ValueId given = gradients.gradient(node.outputs[0]);
  gradients.add(node.inputs[0], gradients.writer(node.layer).gather(given, node.inputs[1]), node.layer);
}

}  // namespace tenon::core

// Coalesce: sums the gradients of gathers from one table into a row-sparse gradient.
// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"
#include "core/graph/differentiator.h"

namespace tenon::core {

// out[ids[i], ...] += values[i, ...], for all contributions; without offsets:
//   values [n..., W...], ids int32 or int64 [n...]
// With offsets, values[s, ...] is added to row ids[i] for each i from offsets[s] to offsets[s + 1] - 1:
//   values [S, W...], ids int32 or int64 [n], offsets int64 [S + 1]
// out: TN_ROW_SPARSE with the shape [V, W...] of the table `whole`, one row per distinct id
ValueId GraphWriter::coalesce(const std::vector<Contribution>& contributions, const Spec& whole) {
  std::vector<ValueId> inputs;
  for (const Contribution& each : contributions) inputs.insert(inputs.end(), {each.values, each.ids, each.offsets});
  append(Coalesce(), std::move(inputs));
  Spec result = whole;
  result.storage = TN_ROW_SPARSE;
  return output(std::move(result));
}

// Records the gradient of a gather as a contribution to its table. finish_rows sums the contributions to a table.
void Differentiator::add_rows(const Node& gather) {
  const ValueId table = gather.inputs[0];
  const ValueId ids = gather.inputs[1];
  GraphWriter::Contribution contribution{gradient(gather.outputs[0]), ids, kNoValue};
  // If the gradient is broadcast from segments to their rows, contributes the values of the segments, with the offsets:
  // the broadcast of [S, W...] to [n, W...] is not computed then.
  const int32_t producer = graph_.values[at(contribution.values)].producer;
  if (producer >= 0 && graph_.spec(ids).shape.size() == 1) {
    const Node& maker = graph_.nodes[static_cast<size_t>(producer)];
    const auto* segment = maker.as<Segment>();
    if (segment != nullptr && segment->op == TN_SEGMENT_BROADCAST && same(segment->rows, graph_.spec(ids).shape[0]))
      contribution = {maker.inputs[0], ids, maker.inputs[1]};
  }
  add_rows(table, contribution, gather.layer);
}

void Differentiator::add_rows(ValueId table, const GraphWriter::Contribution& contribution, int32_t layer) {
  if (is_row_sparse(table)) {
    rows_[table].push_back(contribution);
    rows_layer_.try_emplace(table, layer);
  } else {
    add(table, writer(layer).scatter_add(contribution.values, contribution.ids, graph_.spec(table).shape[0]), layer);
  }
}

// Sets the gradient of a table that gathers read: row-sparse if they are its only readers, else scattered into the
// dense gradient.
void Differentiator::finish_rows(ValueId table, const std::vector<GraphWriter::Contribution>& contributions) {
  const int32_t layer = rows_layer_.at(table);
  const Spec whole = graph_.spec(table);
  ValueId& sum = gradients_[at(table)];
  if (sum == kNoValue) {
    sum = writer(layer).coalesce(contributions, whole);
    return;
  }
  for (const GraphWriter::Contribution& each : contributions) {
    ValueId values = each.values;
    if (each.offsets != kNoValue)
      values = writer(layer).segment(TN_SEGMENT_BROADCAST, values, graph_.spec(each.ids).shape[0], 0);
    add(table, writer(layer).scatter_add(values, each.ids, whole.shape[0]), layer);
  }
}

// Coalesce occurs in backward only.
void Coalesce::derive(Differentiator& /*gradients*/, const Node& /*node*/) const {}

}  // namespace tenon::core

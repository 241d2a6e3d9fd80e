// Row-sparse gradients: the rows that several gathers read, each once.
// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"
#include "core/graph/differentiator.h"

namespace tenon {

ValueId GraphWriter::coalesce(const std::vector<Contribution>& contributions, const Spec& whole) {
  std::vector<ValueId> inputs;
  for (const Contribution& each : contributions) inputs.insert(inputs.end(), {each.values, each.ids, each.offsets});
  append(Coalesce(), std::move(inputs));
  Spec result = whole;
  result.storage = TN_ROWS;
  return output(std::move(result));
}

// A table was read by ids: what its rows get is noted, and becomes one value at the end.
void Differentiator::add_rows(const Node& gather) {
  const ValueId table = gather.inputs[0];
  const ValueId ids = gather.inputs[1];
  GraphWriter::Contribution contribution{gradient(gather.outputs[0]), ids, kNoValue};
  // What a segment spreads over its ids need not be written out for each of them.
  const int32_t producer = graph_.values[index(contribution.values)].producer;
  if (producer >= 0 && graph_.spec(ids).shape.size() == 1) {
    const Node& maker = graph_.nodes[static_cast<size_t>(producer)];
    const auto* segment = maker.as<Segment>();
    if (segment != nullptr && segment->op == TN_SEGMENT_SPREAD && same(segment->rows, graph_.spec(ids).shape[0]))
      contribution = {maker.inputs[0], ids, maker.inputs[1]};
  }
  rows_[table].push_back(contribution);
  rows_layer_.try_emplace(table, gather.layer);
}

void Differentiator::finish_rows(ValueId table, const std::vector<GraphWriter::Contribution>& contributions) {
  const int32_t layer = rows_layer_.at(table);
  const Spec whole = graph_.spec(table);
  ValueId& sum = gradients_[index(table)];
  if (sum == kNoValue) {
    sum = writer(layer).coalesce(contributions, whole);
    return;
  }
  for (const GraphWriter::Contribution& each : contributions) {
    ValueId values = each.values;
    if (each.offsets != kNoValue)
      values = writer(layer).segment(TN_SEGMENT_SPREAD, values, graph_.spec(each.ids).shape[0], 0);
    add(table, writer(layer).scatter_add(values, each.ids, whole.shape[0]), layer);
  }
}

// Stands in backward alone.
void Differentiator::derive(const Node& /*node*/, const Coalesce& /*coalesce*/) {}

}  // namespace tenon

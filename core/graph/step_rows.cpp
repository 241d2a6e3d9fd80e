// The rows of further sequences that the steps of a scan see: whole sequences from outside, and sub-sequences.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/error.h"
#include "core/graph/differentiator.h"
#include "core/graph/loops.h"

namespace tenon::core {

int32_t GraphWriter::step_rows(const Dim& source, int32_t order, int32_t free) {
  for (size_t i = 0; i < graph_.step_rows.size(); ++i)
    if (graph_.step_rows[i].source == source.symbol && graph_.step_rows[i].order == order)
      return static_cast<int32_t>(i);
  const StepOrder of = graph_.orders[static_cast<size_t>(order)];
  const RaggedDim outside = graph_.rows.at(source.symbol);
  StepRows made;
  made.order = order;
  made.source = source.symbol;
  made.whole = same(outside.outer, graph_.rows.at(of.rows).outer);
  made.rows = tn_dim_symbol(free);
  made.layer = layer_;
  append(StepRowTables{static_cast<int32_t>(graph_.step_rows.size())},
         {outside.offsets, made.whole ? of.sequence_of_step : of.row_of_step});
  const auto table = [&](const Dim& dim) { return output({TN_I64, {dim}, TN_DENSE, 0, {}}); };
  Dim ends = of.steps;
  ends.offset += 1;
  made.offsets = table(ends);
  made.row_of_place = table(made.whole ? source : made.rows);
  made.place_of_row = table(source);
  if (made.whole) made.place = table(made.rows);
  graph_.rows[free] = {of.steps, made.offsets, kNoValue};
  graph_.step_rows.push_back(made);
  return static_cast<int32_t>(graph_.step_rows.size()) - 1;
}

// value [rows outside, W...]; out [rows of steps, W...]. A whole sequence is read at each of its steps: its derivative
// is the sum over these.
ValueId GraphWriter::to_step_rows(ValueId value, int32_t order, int32_t free) {
  const Spec spec = graph_.spec(value);
  const auto known = spec.shape.empty() ? graph_.rows.end() : graph_.rows.find(spec.shape[0].symbol);
  const StepOrder& of = graph_.orders[static_cast<size_t>(order)];
  if (known == graph_.rows.end() || !is_ragged(spec.shape[0]) ||
      (!same(known->second.outer, graph_.rows.at(of.rows).outer) && !same(known->second.outer, tn_dim_symbol(of.rows))))
    fail(TN_INVALID, "scan: expected the rows of sequences that belong to those of ", to_string(tn_dim_symbol(of.rows)),
         " or lie in them, got ", to_string(spec));
  if (known->second.count != kNoValue || graph_.rows.at(of.rows).count != kNoValue)
    fail(TN_UNSUPPORTED, "the steps of a scan read sequences whose lengths are known only while a step runs, ",
         to_string(spec), ", which is not in this version");
  if (of.nested)
    fail(TN_UNSUPPORTED, "the steps of a scan that runs within a step of another see sequences, ", to_string(spec),
         ", which is not in this version");
  const StepRows rows = graph_.step_rows[static_cast<size_t>(step_rows(spec.shape[0], order, free))];
  const ValueId ordered = gather(value, rows.row_of_place);
  graph_.nodes.back().as<Gather>()->inverse = rows.place_of_row;
  return rows.whole ? gather(ordered, rows.place) : ordered;
}

void StepRowTables::derive(Differentiator& /*gradients*/, const Node& /*node*/) const {}

const StepRows* step_rows_of(const Graph& graph, ValueId value) {
  const Shape& shape = graph.spec(value).shape;
  const auto found = std::find_if(graph.step_rows.begin(), graph.step_rows.end(),
                                  [&](const StepRows& each) { return !shape.empty() && same(shape[0], each.rows); });
  return found == graph.step_rows.end() ? nullptr : &*found;
}

int32_t order_around(const Graph& graph, int32_t order) {
  const StepOrder& of = graph.orders[static_cast<size_t>(order)];
  if (!of.nested) return -1;
  const auto found = std::find_if(graph.step_rows.begin(), graph.step_rows.end(),
                                  [&](const StepRows& each) { return each.rows.symbol == of.rows; });
  if (found == graph.step_rows.end()) fail(TN_INTERNAL, "a nested order of rows that no steps see");
  return found->order;
}

int32_t outermost_loop(const Graph& graph, int32_t loop) {
  while (loop >= 0 && graph.loops[static_cast<size_t>(loop)].around >= 0)
    loop = graph.loops[static_cast<size_t>(loop)].around;
  return loop;
}

int32_t next_symbol(const Graph& graph, int32_t first) {
  return first + static_cast<int32_t>(2 * graph.orders.size() + graph.step_rows.size());
}

}  // namespace tenon::core

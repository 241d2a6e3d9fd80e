// Scans: the order of steps, and memories from step to step. A scan is recorded over all its steps at once: a value of
// its body is [steps, W...], and only a memory relates different steps. So derivatives are those of the nodes, and
// arrange_loops finds the nodes that must run step by step.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/error.h"
#include "core/graph/differentiator.h"
#include "core/graph/loops.h"

namespace tenon::core {

int32_t GraphWriter::step_order(const Dim& rows, bool reverse, bool nested, int32_t free) {
  const auto known = graph_.rows.find(rows.symbol);
  if (known == graph_.rows.end() || rows.coefficient != 1 || rows.offset != 0)
    fail(TN_INVALID, "scan: ", to_string(rows), " is not a ragged dimension");
  for (size_t i = 0; i < graph_.orders.size(); ++i)
    if (graph_.orders[i].rows == rows.symbol && graph_.orders[i].reverse == reverse &&
        graph_.orders[i].nested == nested)
      return static_cast<int32_t>(i);
  StepOrder order;
  order.rows = rows.symbol;
  order.reverse = reverse;
  order.nested = nested;
  order.steps = tn_dim_symbol(free);
  order.states = tn_dim_symbol(free + 1);
  const RaggedDim of = known->second;
  const auto number = static_cast<int32_t>(graph_.orders.size());
  graph_.orders.push_back(order);
  std::vector<ValueId> inputs = {of.offsets};
  if (nested) inputs.push_back(graph_.orders[static_cast<size_t>(order_around(graph_, number))].sequence_of_step);
  append(StepTables{number}, std::move(inputs));
  const auto table = [&](const Dim& dim) { return output({TN_I64, {dim}, TN_DENSE, 0, {}}); };
  order.row_of_step = table(order.steps);
  order.step_of_row = table(rows);
  order.sequence_of_step = table(order.steps);
  order.before = table(order.steps);
  order.last = table(of.outer);
  order.initial = table(of.outer);
  graph_.orders.back() = order;
  return number;
}

// value [rows, W...] or [sequences, W...]; out [steps, W...]. Values of sequences enter a nested order through the
// rows: within an outer step these operations, and their derivatives, stay within segments and permutations of its
// rows.
ValueId GraphWriter::to_steps(ValueId value, int32_t order) {
  const StepOrder of = graph_.orders[static_cast<size_t>(order)];
  const Dim rows = tn_dim_symbol(of.rows), outer = graph_.rows.at(of.rows).outer;
  const Shape shape = graph_.spec(value).shape;
  const bool each = !shape.empty() && same(shape[0], outer);
  if (each && !of.nested) return gather(value, of.sequence_of_step);
  if (!each && (shape.empty() || !same(shape[0], rows)))
    fail(TN_INVALID, "scan input: expected a value of [", to_string(rows), ", ...] or [", to_string(outer),
         ", ...], got ", to_string(graph_.spec(value)), "; all sequences of a scan have the same lengths");
  const ValueId made = gather(each ? segment(TN_SEGMENT_BROADCAST, value, rows, 0) : value, of.row_of_step);
  graph_.nodes.back().as<Gather>()->inverse = of.step_of_row;
  return made;
}

// value [steps, W...]; out [rows, W...]. Or value [rows of steps, W...]; out [rows of the sub-sequences, W...]
ValueId GraphWriter::from_steps(ValueId value) {
  const StepOrder* const order = order_of(graph_, value);
  const StepRows* const rows = order == nullptr ? step_rows_of(graph_, value) : nullptr;
  if (order == nullptr && (rows == nullptr || rows->whole))
    fail(TN_INVALID, "scan output: expected a value of the steps of a scan, got ", to_string(graph_.spec(value)));
  const ValueId ids = rows == nullptr ? order->step_of_row : rows->place_of_row;
  const ValueId inverse = rows == nullptr ? order->row_of_step : rows->row_of_place;
  const ValueId made = gather(value, ids);
  graph_.nodes.back().as<Gather>()->inverse = inverse;
  return made;
}

ValueId GraphWriter::memory(int32_t loop, const Spec& shape, ValueId initial) {
  const StepOrder& order = graph_.orders[static_cast<size_t>(graph_.loops[static_cast<size_t>(loop)].order)];
  Spec found{shape.dtype, shape.shape, TN_DENSE, 0, {}};
  found.shape.insert(found.shape.begin(), order.steps);
  for (const Dim& dim : shape.shape)
    if (dim.symbol != TN_SYMBOL_NONE) fail(TN_INVALID, "scan: a memory of ", to_string(shape), ", which varies");
  if (initial != kNoValue) {
    Spec expected = found;
    expected.shape[0] = graph_.rows.at(order.rows).outer;
    const Spec& given = graph_.spec(initial);
    if (!same(given.shape, expected.shape) || given.dtype != expected.dtype)
      fail(TN_INVALID, "scan: the initial value of a memory is ", to_string(given), "; expected ", to_string(expected));
  }
  append(Memory{loop}, {initial, kNoValue});
  return output(std::move(found));
}

ValueId GraphWriter::end_memory(ValueId memory, ValueId next) {
  Node& node = graph_.nodes[static_cast<size_t>(graph_.values[static_cast<size_t>(memory)].producer)];
  const Spec& found = graph_.spec(memory);
  const Spec& left = graph_.spec(next);
  if (!same(found.shape, left.shape) || found.dtype != left.dtype)
    fail(TN_INVALID, "scan: a memory of ", to_string(found), " is updated with ", to_string(left));
  node.inputs[1] = next;
  const int32_t loop = node.as<Memory>()->loop;
  const StepOrder& order = graph_.orders[static_cast<size_t>(graph_.loops[static_cast<size_t>(loop)].order)];
  Spec last{found.dtype, found.shape, TN_DENSE, 0, {}};
  last.shape[0] = graph_.rows.at(order.rows).outer;
  const ValueId initial = node.inputs[0];
  append(LastStep{loop, memory}, {next, initial});
  return output(std::move(last));
}

void StepTables::derive(Differentiator& /*gradients*/, const Node& /*node*/) const {}

namespace {

ValueId zeros(GraphWriter write, const Shape& shape) {
  ProgramWriter program;
  program.output(program.expand(program.constant(0), TN_FULL));
  return write.pointwise_on(std::make_shared<Program>(program.finish()), {}, shape, 1)[0];
}

}  // namespace

// The memories whose states have a part in a gradient get memories of the backward loop, which carry gradients from
// step to step: what a step finds there is added to the gradient of what it leaves.
void Differentiator::begin_loop(size_t last) {
  const int32_t loop = graph_.nodes[last].as<LastStep>()->loop;
  if (!begun_.insert(loop).second) return;
  const std::vector<Node> nodes(graph_.nodes.begin(), graph_.nodes.begin() + static_cast<std::ptrdiff_t>(last) + 1);
  const size_t first = first_memory(graph_, loop);
  // What a value with a gradient depends on, through steps too.
  std::vector<bool> reached(gradients_.size());
  for (size_t i = 0; i < reached.size(); ++i) reached[i] = gradients_[i] != kNoValue;
  for (bool more = true; more;) {
    more = false;
    for (size_t i = last + 1; i-- > first;) {
      const Node& node = nodes[i];
      if (std::none_of(node.outputs.begin(), node.outputs.end(),
                       [&](ValueId output) { return output != kNoValue && reached[at(output)]; }))
        continue;
      for (const ValueId input : node.inputs) {
        if (input == kNoValue || reached[at(input)]) continue;
        reached[at(input)] = true;
        more = true;
      }
    }
  }
  const int32_t backward = static_cast<int32_t>(graph_.loops.size());
  graph_.loops.push_back({graph_.loops[static_cast<size_t>(loop)].order, true});
  for (size_t i = last + 1; i-- > first;) {
    const Node& node = nodes[i];
    const auto* const at_end = node.as<LastStep>();
    if (at_end == nullptr || at_end->loop != loop || !(needed(node.inputs[0]) || needed(node.inputs[1])) ||
        !reached[at(node.inputs[0])])
      continue;
    Spec shape{graph_.spec(node.inputs[0]).dtype, graph_.spec(node.inputs[0]).shape, TN_DENSE, 0, {}};
    shape.shape.erase(shape.shape.begin());
    const ValueId carried = writer(node.layer).memory(backward, shape, gradient(node.outputs[0]));
    carried_[at_end->memory] = carried;
    add(node.inputs[0], carried, node.layer);
  }
}

void LastStep::derive(Differentiator& /*gradients*/, const Node& /*node*/) const {}  // begin_loop has done it

void Memory::derive(Differentiator& gradients, const Node& node) const { gradients.end_memory(node); }

void Differentiator::end_memory(const Node& memory) {
  const auto carried = carried_.find(memory.outputs[0]);
  if (carried == carried_.end()) return;
  ValueId given = gradient(memory.outputs[0]);
  if (given == kNoValue) given = zeros(writer(memory.layer), graph_.spec(memory.outputs[0]).shape);
  const ValueId last = writer(memory.layer).end_memory(carried->second, given);
  if (needed(memory.inputs[0])) add(memory.inputs[0], last, memory.layer);
}

}  // namespace tenon::core

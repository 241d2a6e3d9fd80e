// SPDX-License-Identifier: Apache-2.0
#include "host/compile/loop_calls.h"

#include <algorithm>

#include "core/alignment.h"
#include "core/graph/loops.h"

namespace tenon::host {

LoopCalls::LoopCalls(const Graph& graph, int32_t loop, size_t first, LoopCalls* around,
                     const std::vector<int32_t>& steps_of, const std::vector<int64_t>& bounds)
    : graph_(graph), loop_(loop), first_(first), around_(around), steps_of_(steps_of), bounds_(bounds) {
  if (around_ != nullptr) static_cast<void>(around_->part_of(order().steps));  // its size is set again at each step
}

int32_t LoopCalls::order_number() const { return graph_.loops[static_cast<size_t>(loop_)].order; }

void LoopCalls::count_call() {
  ++calls_;
  if (around_ != nullptr) around_->count_call();
}

LoopCalls::Place LoopCalls::place_of(ValueId value) const {
  for (ValueId source = value; source != kNoValue; source = graph_.values[static_cast<size_t>(source)].alias_of) {
    const StepPlace place = graph_.values[static_cast<size_t>(source)].place;
    if (place == StepPlace::kPrefix) return Place::kFirst;
    if (place != StepPlace::kNone) return place == StepPlace::kBefore ? Place::kBefore : Place::kOfStep;
  }
  return steps_of_[static_cast<size_t>(graph_.root(value))] == loop_ ? Place::kFirst : Place::kOfStep;
}

int64_t LoopCalls::row_bytes(ValueId value) const {
  const Spec& spec = graph_.spec(value);
  const Dim width = elements(spec.shape.data() + 1, spec.shape.size() - 1);
  return static_cast<int64_t>(
      storage_bytes(spec.dtype, static_cast<uint64_t>(tn_dim_value(&width, nullptr)), "bytes of a step"));
}

const LoopCalls::Part* LoopCalls::add_part(int32_t symbol, const StepRows* rows) {
  for (const Part& each : parts_)
    if (each.symbol == symbol) return &each;
  Part& made = parts_.emplace_back();
  made.symbol = symbol;
  made.rows = rows;
  return &made;
}

// Returns the part of a dimension that belongs to a step; null if it is none of steps. The elements of a nested order
// are as many as the rows of its sequences.
const LoopCalls::Part* LoopCalls::part_of(const Dim& dim) {
  if (dim.symbol == order().steps.symbol) return add_part(dim.symbol, nullptr);
  int32_t rows = dim.symbol;
  for (size_t i = 0; i < graph_.orders.size(); ++i)
    if (graph_.orders[i].steps.symbol == rows && order_around(graph_, static_cast<int32_t>(i)) == order_number()) {
      rows = graph_.orders[i].rows;
      break;
    }
  for (const StepRows& each : graph_.step_rows)
    if (each.rows.symbol == rows && each.order == order_number()) return add_part(dim.symbol, &each);
  return nullptr;
}

tn_tensor* LoopCalls::add_table(ValueId value, const tn_tensor& whole, const Dim& of, const Dim& into) {
  for (StepTable& each : tables_)
    if (each.value == value) return &each.tensor;
  StepTable& made = tables_.emplace_back();
  made.value = value;
  made.of = part_of(of);
  made.into = part_of(into);
  made.more = graph_.spec(value).shape[0].offset;
  made.most = tn_dim_value(graph_.spec(value).shape.data(), bounds_.data());
  made.tensor = whole;
  made.tensor.dl.shape = &made.size;
  return &made.tensor;
}

// Returns the tensor of a table of the elements of a step; null if the value is none.
tn_tensor* LoopCalls::table(ValueId value, const tn_tensor& whole) {
  for (const StepRows& rows : graph_.step_rows)
    if (rows.offsets == value && rows.order == order_number()) return add_table(value, whole, order().steps, rows.rows);
  for (size_t i = 0; i < graph_.orders.size(); ++i) {
    if (order_around(graph_, static_cast<int32_t>(i)) != order_number()) continue;
    const StepOrder& inner = graph_.orders[i];
    const Dim rows = tn_dim_symbol(inner.rows);
    if (value == inner.row_of_step) return add_table(value, whole, inner.steps, rows);
    if (value == inner.step_of_row) return add_table(value, whole, rows, inner.steps);
    if (value == inner.before) return add_table(value, whole, inner.steps, inner.states);
    if (value == inner.last || value == inner.initial) return add_table(value, whole, order().steps, inner.states);
  }
  return nullptr;
}

tn_tensor* LoopCalls::tensor(ValueId value, tn_tensor& whole) {
  if (tn_tensor* const found = table(value, whole)) return found;
  const Spec& spec = graph_.spec(value);
  const Part* const part = spec.shape.empty() ? nullptr : part_of(spec.shape[0]);
  if (part == nullptr) return &whole;
  if (const auto known = by_value_.find(value); known != by_value_.end()) return &known->second->tensor;
  StepTensor& made = tensors_.emplace_back();
  by_value_[value] = &made;
  made.value = value;
  made.part = part;
  made.place = place_of(value);
  made.rows = spec.shape[0].coefficient;
  made.row_bytes = row_bytes(value) * made.rows;
  made.shape.assign(whole.dl.shape, whole.dl.shape + whole.dl.ndim);
  made.tensor = whole;
  made.tensor.dl.shape = made.shape.data();
  if (made.place != Place::kFirst) {
    uint32_t alignment = kCacheLine;
    while (made.row_bytes % alignment != 0) alignment /= 2;
    made.tensor.alignment = alignment;
  }
  return &made.tensor;
}

void LoopCalls::bind(const MemoryOf& memory, const HostTables& tables, const SealedMemory& sealed) {
  sealed_ = sealed;
  for (StepTensor& each : tensors_) each.base = static_cast<std::byte*>(memory(graph_.root(each.value)));
  for (auto& [value, to] : sums_) to = static_cast<std::byte*>(memory(value));
  for (StepTable& each : tables_) {
    each.whole = tables.at(each.value);
    const uint64_t bytes = static_cast<uint64_t>(each.most) * sizeof(int64_t);
    each.of_step = Buffer(sealed_.access->allocator(), bytes);
    each.tensor.dl.data = each.of_step.data();
    if (sealed_.access->is_direct()) continue;
    each.memory = DeviceMemory(sealed_.access->device(), bytes);
    each.tensor.dl.data = each.memory.data();
  }
  for (Part& each : parts_)
    if (each.rows != nullptr) each.offsets = tables.at(each.rows->offsets);
  states_.clear();
  for (const auto& [node, initial] : memories_) {
    const ValueId states = node->outputs[1], places = backward() ? order().last : order().initial;
    states_.push_back({static_cast<std::byte*>(memory(states)), initial, tables.at(places), row_bytes(states)});
  }
}

void LoopCalls::begin(const StepRange& range, const int64_t* symbols) const {
  HostAccess& access = *sealed_.access;
  for (const auto& [value, to] : sums_)
    access.zero(to, static_cast<uint64_t>(tn_dim_value(graph_.spec(value).shape.data(), symbols) * row_bytes(value)));
  for (const States& each : states_)
    for (int64_t i = 0; i < range.sequences; ++i) {
      std::byte* const to = each.states + each.places[range.first_sequence + i] * each.row_bytes;
      if (each.initial == nullptr)
        access.zero(to, static_cast<uint64_t>(each.row_bytes));
      else
        access.move(to, static_cast<const std::byte*>(each.initial->dl.data) + i * each.row_bytes,
                    static_cast<uint64_t>(each.row_bytes));
    }
}

void LoopCalls::move_to(const StepSchedule& schedule, int64_t t, int64_t* symbols) {
  step_ = t;
  const int64_t start = schedule.start(t), running = schedule.running(t);
  for (Part& each : parts_) {
    each.first = each.rows == nullptr ? start : each.offsets[start];
    each.count = each.rows == nullptr ? running : each.offsets[start + running] - each.first;
    symbols[each.symbol] = each.count;
  }
  sealed_.put_symbols(bounds_.size());
  for (StepTable& each : tables_) {
    each.size = each.of->count + each.more;
    const int64_t* const whole = each.whole + each.of->first;
    const int64_t first = each.into == nullptr ? 0 : each.into->first;
    auto* const of_step = reinterpret_cast<int64_t*>(each.of_step.data());
    for (int64_t i = 0; i < each.size; ++i) of_step[i] = whole[i] - first;
    if (!sealed_.access->is_direct())
      sealed_.access->write(each.memory.data(), each.of_step.data(),
                            static_cast<uint64_t>(each.size) * sizeof(int64_t));
  }
  for (StepTensor& each : tensors_) {
    int64_t first = each.part->first;
    if (each.place != Place::kOfStep) first = each.place == Place::kBefore ? schedule.before(t) : 0;
    each.tensor.dl.data = each.base + first * each.row_bytes;
    each.shape[0] = each.part->count * each.rows;
  }
}

void LoopCalls::end(const StepRange& range, int64_t* symbols) const {
  for (const Part& each : parts_)
    symbols[each.symbol] = each.rows == nullptr ? range.elements : each.offsets[range.elements];
  sealed_.put_symbols(bounds_.size());
}

}  // namespace tenon::host

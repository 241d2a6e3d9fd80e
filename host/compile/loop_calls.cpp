// SPDX-License-Identifier: Apache-2.0
#include "host/compile/loop_calls.h"

#include <algorithm>
#include <cstring>

#include "core/alignment.h"
#include "core/graph/loops.h"

namespace tenon::host {

LoopCalls::LoopCalls(const Graph& graph, int32_t loop, size_t first, const std::vector<int32_t>& steps_of,
                     const std::vector<int64_t>& bounds)
    : graph_(graph), loop_(loop), first_(first), steps_of_(steps_of), bounds_(bounds) {}

int32_t LoopCalls::order_number() const { return graph_.loops[static_cast<size_t>(loop_)].order; }

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

LoopCalls::SeenRows& LoopCalls::seen(const StepRows& rows) {
  const auto known = std::find_if(rows_.begin(), rows_.end(), [&](const SeenRows& each) { return each.of == &rows; });
  if (known != rows_.end()) return *known;
  SeenRows& made = rows_.emplace_back();
  made.of = &rows;
  const Dim& sequences = graph_.rows.at(order().rows).outer;
  made.of_step.resize(static_cast<size_t>(tn_dim_value(&sequences, bounds_.data())) + 1);
  return made;
}

// The offsets of the rows that a step sees, from 0 on, instead of those of all steps.
tn_tensor* LoopCalls::offsets_of_step(SeenRows& rows, const tn_tensor& whole) {
  rows.offsets_tensor = whole;
  rows.offsets_tensor.dl.data = rows.of_step.data();
  rows.offsets_tensor.dl.shape = &rows.sequences_and_one;
  rows.offsets_tensor.alignment = alignof(int64_t);
  return &rows.offsets_tensor;
}

tn_tensor* LoopCalls::tensor(ValueId value, tn_tensor& whole) {
  for (const StepRows& rows : graph_.step_rows)
    if (rows.offsets == value && rows.order == order_number()) return offsets_of_step(seen(rows), whole);
  const Spec& spec = graph_.spec(value);
  const StepRows* const rows = step_rows_of(graph_, value);
  const bool by_step = rows != nullptr ? rows->order == order_number()
                                       : !spec.shape.empty() && spec.shape[0].symbol == order().steps.symbol;
  if (!by_step) return &whole;
  if (const auto known = by_value_.find(value); known != by_value_.end()) return &known->second->tensor;
  StepTensor& made = tensors_.emplace_back();
  by_value_[value] = &made;
  made.value = value;
  made.rows = rows == nullptr ? nullptr : &seen(*rows);
  made.place = place_of(value);
  made.row_bytes = row_bytes(value);
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

void LoopCalls::bind(const MemoryOf& memory) {
  for (StepTensor& each : tensors_) each.base = static_cast<std::byte*>(memory(graph_.root(each.value)));
  for (auto& [value, to] : sums_) to = static_cast<std::byte*>(memory(value));
  for (SeenRows& each : rows_) each.offsets = static_cast<const int64_t*>(memory(each.of->offsets));
  states_.clear();
  for (const Node* node : memories_) {
    const ValueId initial = node->inputs[0], states = node->outputs[1];
    const ValueId places = backward() ? order().last : order().initial;
    states_.push_back({static_cast<std::byte*>(memory(states)),
                       initial == kNoValue ? nullptr : static_cast<const std::byte*>(memory(initial)),
                       static_cast<const int64_t*>(memory(places)), row_bytes(states)});
  }
}

void LoopCalls::begin(int64_t sequences, const int64_t* symbols) const {
  for (const auto& [value, to] : sums_)
    std::memset(to, 0, static_cast<size_t>(tn_dim_value(graph_.spec(value).shape.data(), symbols) * row_bytes(value)));
  for (const States& each : states_)
    for (int64_t i = 0; i < sequences; ++i) {
      std::byte* const to = each.states + each.places[i] * each.row_bytes;
      if (each.initial == nullptr)
        std::memset(to, 0, static_cast<size_t>(each.row_bytes));
      else
        std::memcpy(to, each.initial + i * each.row_bytes, static_cast<size_t>(each.row_bytes));
    }
}

void LoopCalls::move_to(const StepSchedule& schedule, int64_t t, int64_t* symbols) {
  const int64_t before = t == 0 ? schedule.elements() : schedule.start(t - 1), running = schedule.running(t);
  symbols[order().steps.symbol] = running;
  for (SeenRows& each : rows_) {
    const int64_t* const offsets = each.offsets + schedule.start(t);
    each.first = offsets[0];
    each.count = offsets[running] - offsets[0];
    for (int64_t i = 0; i <= running; ++i) each.of_step[static_cast<size_t>(i)] = offsets[i] - offsets[0];
    each.sequences_and_one = running + 1;
    symbols[each.of->rows.symbol] = each.count;
  }
  for (StepTensor& each : tensors_) {
    int64_t start = each.rows != nullptr ? each.rows->first : schedule.start(t);
    if (each.place != Place::kOfStep) start = each.place == Place::kBefore ? before : 0;
    each.tensor.dl.data = each.base + start * each.row_bytes;
    each.shape[0] = each.rows != nullptr ? each.rows->count : running;
  }
}

void LoopCalls::end(const StepSchedule& schedule, int64_t* symbols) const {
  symbols[order().steps.symbol] = schedule.elements();
  for (const SeenRows& each : rows_) symbols[each.of->rows.symbol] = each.offsets[schedule.elements()];
}

}  // namespace tenon::host

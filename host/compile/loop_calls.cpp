// SPDX-License-Identifier: Apache-2.0
#include "host/compile/loop_calls.h"

#include <algorithm>
#include <cstring>

#include "core/alignment.h"
#include "core/graph/loops.h"

namespace tenon::host {

LoopCalls::LoopCalls(const Graph& graph, int32_t loop, size_t first, const std::vector<int32_t>& steps_of)
    : graph_(graph), loop_(loop), first_(first), steps_of_(steps_of) {}

int32_t LoopCalls::order_number() const { return graph_.loops[static_cast<size_t>(loop_)].order; }

LoopCalls::Place LoopCalls::place_of(ValueId value) const {
  for (ValueId source = value; source != kNoValue; source = graph_.values[static_cast<size_t>(source)].alias_of) {
    const StatePlace place = graph_.values[static_cast<size_t>(source)].place;
    if (place != StatePlace::kNone) return place == StatePlace::kBefore ? Place::kBefore : Place::kOfStep;
  }
  return steps_of_[static_cast<size_t>(graph_.root(value))] == loop_ ? Place::kOneStep : Place::kOfStep;
}

int64_t LoopCalls::row_bytes(ValueId value) const {
  const Spec& spec = graph_.spec(value);
  const Dim width = elements(spec.shape.data() + 1, spec.shape.size() - 1);
  return static_cast<int64_t>(
      storage_bytes(spec.dtype, static_cast<uint64_t>(tn_dim_value(&width, nullptr)), "bytes of a step"));
}

tn_tensor* LoopCalls::tensor(ValueId value, tn_tensor& whole) {
  const Spec& spec = graph_.spec(value);
  if (spec.shape.empty() || spec.shape[0].symbol != order().steps.symbol) return &whole;
  if (const auto known = by_value_.find(value); known != by_value_.end()) return &known->second->tensor;
  StepTensor& made = tensors_.emplace_back();
  by_value_[value] = &made;
  made.value = value;
  made.place = place_of(value);
  made.row_bytes = row_bytes(value);
  made.shape.assign(whole.dl.shape, whole.dl.shape + whole.dl.ndim);
  made.tensor = whole;
  made.tensor.dl.shape = made.shape.data();
  if (made.place != Place::kOneStep) {
    uint32_t alignment = kCacheLine;
    while (made.row_bytes % alignment != 0) alignment /= 2;
    made.tensor.alignment = alignment;
  }
  return &made.tensor;
}

void LoopCalls::bind(const MemoryOf& memory) {
  for (StepTensor& each : tensors_) each.base = static_cast<std::byte*>(memory(graph_.root(each.value)));
  states_.clear();
  for (const Node* node : memories_) {
    const ValueId initial = node->inputs[0], states = node->outputs[1];
    const ValueId places = backward() ? order().last : order().initial;
    states_.push_back({static_cast<std::byte*>(memory(states)),
                       initial == kNoValue ? nullptr : static_cast<const std::byte*>(memory(initial)),
                       static_cast<const int64_t*>(memory(places)), row_bytes(states)});
  }
}

void LoopCalls::begin(int64_t sequences) const {
  for (const States& each : states_)
    for (int64_t i = 0; i < sequences; ++i) {
      std::byte* const to = each.states + each.places[i] * each.row_bytes;
      if (each.initial == nullptr)
        std::memset(to, 0, static_cast<size_t>(each.row_bytes));
      else
        std::memcpy(to, each.initial + i * each.row_bytes, static_cast<size_t>(each.row_bytes));
    }
}

void LoopCalls::move_to(const StepSchedule& schedule, int64_t t) {
  const int64_t before = t == 0 ? schedule.elements() : schedule.start(t - 1);
  for (StepTensor& each : tensors_) {
    const int64_t start = each.place == Place::kOneStep ? 0 : each.place == Place::kBefore ? before : schedule.start(t);
    each.tensor.dl.data = each.base + start * each.row_bytes;
    each.shape[0] = schedule.running(t);
  }
}

}  // namespace tenon::host

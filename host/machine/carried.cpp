// SPDX-License-Identifier: Apache-2.0
#include "host/machine/carried.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace tenon::host {

namespace {

// Returns the bytes of one sample of a carried state, and of all of it.
std::pair<uint64_t, uint64_t> carried_bytes(const Spec& spec, int64_t max_samples) {
  uint64_t bytes = tn_dtype_bytes(spec.dtype);
  const bool by_sample = !spec.shape.empty() && spec.shape[0].symbol != TN_SYMBOL_NONE;
  for (size_t i = by_sample ? 1 : 0; i < spec.shape.size(); ++i) bytes *= static_cast<uint64_t>(spec.shape[i].offset);
  return {by_sample ? bytes : 0, by_sample ? bytes * static_cast<uint64_t>(max_samples) : bytes};
}

}  // namespace

void CarriedMemory::copy_to(CompiledModel& larger) const {
  for (size_t i = 0; i < model_.lowered.carried.size(); ++i) {
    const CarriedUse &from_use = model_.lowered.carried[i], &to_use = larger.lowered.carried[i];
    const uint64_t bytes = carried_bytes(model_.calls->graph().spec(from_use.now), max_samples_).second;
    access_.move(larger.calls->memory(to_use.now), model_.calls->memory(from_use.now), bytes);
    if (from_use.next != kNoValue && samples_ > 0)
      access_.move(larger.calls->memory(to_use.next), model_.calls->memory(from_use.next), bytes);
  }
}

void CarriedMemory::advance(int64_t samples) {
  for (const CarriedUse& use : model_.lowered.carried) {
    const auto [per_sample, all] = carried_bytes(model_.calls->graph().spec(use.now), max_samples_);
    if (use.next == kNoValue || samples_ == 0) continue;
    auto* const now = static_cast<std::byte*>(model_.calls->memory(use.now));
    const uint64_t known = per_sample == 0 ? all : per_sample * static_cast<uint64_t>(std::min(samples, samples_));
    access_.move(now, model_.calls->memory(use.next), known);
    access_.zero(now + known, all - known);
  }
  samples_ = 0;
}

void CarriedMemory::reset() {
  samples_ = 0;
  for (const CarriedUse& use : model_.lowered.carried)
    access_.zero(model_.calls->memory(use.now),
                 carried_bytes(model_.calls->graph().spec(use.now), max_samples_).second);
}

CarriedStates CarriedMemory::states() const {
  CarriedStates result;
  result.samples = samples_;
  for (const CarriedUse& use : model_.lowered.carried) {
    std::vector<std::byte>& value = result.values.emplace_back();
    if (use.next == kNoValue || samples_ == 0) continue;
    const auto [per_sample, all] = carried_bytes(model_.calls->graph().spec(use.now), max_samples_);
    value.resize(per_sample == 0 ? all : per_sample * static_cast<uint64_t>(samples_));
    access_.read(value.data(), model_.calls->memory(use.next), value.size());
  }
  return result;
}

void CarriedMemory::set(const CarriedStates& states) {
  const std::vector<CarriedUse>& uses = model_.lowered.carried;
  if (states.samples < 0 || states.samples > max_samples_)
    fail(TN_BAD_DATA, "carried states of ", states.samples, " samples; the machine has room for ", max_samples_);
  if (states.values.size() != uses.size())
    fail(TN_BAD_DATA, states.values.size(), " carried states; the machine has ", uses.size());
  for (size_t i = 0; i < uses.size(); ++i) {
    const auto [per_sample, all] = carried_bytes(model_.calls->graph().spec(uses[i].now), max_samples_);
    const auto samples = static_cast<uint64_t>(states.samples);
    const uint64_t bytes = uses[i].next == kNoValue || samples == 0 ? 0 : per_sample == 0 ? all : per_sample * samples;
    if (states.values[i].size() != bytes)
      fail(TN_BAD_DATA, "carried state ", i, " has ", states.values[i].size(), " bytes; expected ", bytes);
  }
  reset();
  for (size_t i = 0; i < uses.size(); ++i)
    if (!states.values[i].empty())
      access_.write(model_.calls->memory(uses[i].next), states.values[i].data(), states.values[i].size());
  samples_ = states.samples;
}

}  // namespace tenon::host

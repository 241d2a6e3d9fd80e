// States that are carried from minibatch to minibatch. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <utility>

#include "core/checked.h"
#include "core/error.h"
#include "host/machine/machine.h"
#include "host/machine/shards.h"

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

void Machine::copy_carried(CompiledModel& to) const {
  for (size_t i = 0; i < model_.lowered.carried.size(); ++i) {
    const CarriedUse &from_use = model_.lowered.carried[i], &to_use = to.lowered.carried[i];
    const uint64_t bytes = carried_bytes(model_.calls->graph().spec(from_use.now), options_.max_samples).second;
    access_->move(to.calls->memory(to_use.now), model_.calls->memory(from_use.now), bytes);
    if (from_use.next != kNoValue && carried_samples_ > 0)
      access_->move(to.calls->memory(to_use.next), model_.calls->memory(from_use.next), bytes);
  }
}

// Makes the next states of the last forward the present ones. Samples that it did not have begin with zeros.
void Machine::advance_carried(int64_t samples) {
  for (const CarriedUse& use : model_.lowered.carried) {
    const auto [per_sample, all] = carried_bytes(model_.calls->graph().spec(use.now), options_.max_samples);
    if (use.next == kNoValue || carried_samples_ == 0) continue;
    auto* const now = static_cast<std::byte*>(model_.calls->memory(use.now));
    const uint64_t known =
        per_sample == 0 ? all : per_sample * static_cast<uint64_t>(std::min(samples, carried_samples_));
    access_->move(now, model_.calls->memory(use.next), known);
    access_->zero(now + known, all - known);
  }
  carried_samples_ = 0;
}

void Machine::reset_carried() {
  require_own();
  shards_ == nullptr ? reset_own_carried() : shards_->reset_carried();
}

void Machine::reset_own_carried() {
  if (!set_->has_values()) return;
  carried_samples_ = 0;
  for (const CarriedUse& use : model_.lowered.carried)
    access_->zero(model_.calls->memory(use.now),
                  carried_bytes(model_.calls->graph().spec(use.now), options_.max_samples).second);
}

Machine::Carried Machine::carried() const { return shards_ == nullptr ? own_carried() : shards_->carried(); }

Machine::Carried Machine::own_carried() const {
  Carried result;
  result.samples = carried_samples_;
  for (const CarriedUse& use : model_.lowered.carried) {
    std::vector<std::byte>& value = result.values.emplace_back();
    if (use.next == kNoValue || carried_samples_ == 0) continue;
    const auto [per_sample, all] = carried_bytes(model_.calls->graph().spec(use.now), options_.max_samples);
    value.resize(per_sample == 0 ? all : per_sample * static_cast<uint64_t>(carried_samples_));
    access_->read(value.data(), model_.calls->memory(use.next), value.size());
  }
  return result;
}

void Machine::set_carried(const Carried& carried) {
  shards_ == nullptr ? set_own_carried(carried) : shards_->set_carried(carried);
}

void Machine::set_own_carried(const Carried& carried) {
  const std::vector<CarriedUse>& uses = model_.lowered.carried;
  if (carried.samples < 0 || carried.samples > options_.max_samples)
    fail(TN_BAD_DATA, "carried states of ", carried.samples, " samples; the machine has room for ",
         options_.max_samples);
  if (carried.values.size() != uses.size())
    fail(TN_BAD_DATA, carried.values.size(), " carried states; the machine has ", uses.size());
  for (size_t i = 0; i < uses.size(); ++i) {
    const auto [per_sample, all] = carried_bytes(model_.calls->graph().spec(uses[i].now), options_.max_samples);
    const uint64_t samples = static_cast<uint64_t>(carried.samples);
    const uint64_t bytes = uses[i].next == kNoValue || samples == 0 ? 0 : per_sample == 0 ? all : per_sample * samples;
    if (carried.values[i].size() != bytes)
      fail(TN_BAD_DATA, "carried state ", i, " has ", carried.values[i].size(), " bytes; expected ", bytes);
  }
  reset_own_carried();
  for (size_t i = 0; i < uses.size(); ++i)
    if (!carried.values[i].empty())
      access_->write(model_.calls->memory(uses[i].next), carried.values[i].data(), carried.values[i].size());
  carried_samples_ = carried.samples;
}

}  // namespace tenon::host

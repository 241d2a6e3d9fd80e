// SPDX-License-Identifier: Apache-2.0
#include "host/training/best_values.h"

#include <cstring>
#include <utility>

#include "host/training/sets.h"

namespace tenon::host {

BestValues::BestValues(const BestOptions& options, bool of_test, std::vector<Copy> copies)
    : options_(options),
      watched_(watched(options.metric, options.best_is_highest, of_test)),
      copies_(std::move(copies)),
      best_(options.best_is_highest) {
  for (const Copy& copy : copies_) check_receiver(*copy.source, *copy.target, "best");
  if (copies_.size() > 1) watched_ += " with averages";
}

void BestValues::take(const TestResult& measured, const TrainingPlace& place) {
  Best next = best_;
  if (!next.take(compared(options_.metric, measured))) return;
  for (const Copy& copy : copies_) {
    const SetRead read(*copy.source_gate);
    if (!is_finite(*copy.source)) return;
  }
  for (const Copy& copy : copies_) {
    const SetRead read(*copy.source_gate);
    const SetWrite write(*copy.target_gate);
    for (const ParameterEntry& entry : copy.source->entries())
      if (entry.count > 0)
        std::memcpy(copy.target->change(entry.name), copy.source->values(entry), entry.count * sizeof(float));
    copy.target->set_names(copy.source->names());
  }
  best_ = next;
  place_ = place;
}

std::optional<BestPlace> BestValues::best() const {
  if (!best_.value()) return std::nullopt;
  return BestPlace{*best_.value(), place_.pass, place_.batch};
}

CheckpointRecord BestValues::record() const {
  CheckpointRecord record;
  record.loop.place = place_;
  record.best = best_.value();
  record.best_watched = watched_;
  return record;
}

// apart: values that are not those of the sets; null: those of the sets.
std::vector<Updater::StateValues> BestValues::views(const std::vector<ParameterSet::Values>* apart) const {
  std::vector<Updater::StateValues> result;
  for (size_t i = 0; i < copies_.size(); ++i) {
    ParameterSet& set = *copies_[i].target;
    for (const ParameterEntry& entry : set.entries())
      result.push_back({i == 0 ? "value" : "average", entry.name, entry.shape,
                        apart == nullptr ? set.change(entry) : (*apart)[i].data(entry), entry.count});
  }
  return result;
}

std::vector<Updater::StateValues> BestValues::values() const {
  return best_.value() ? views(nullptr) : std::vector<Updater::StateValues>();
}

std::optional<BestValues::Restored> BestValues::read(CheckpointFile& file) const {
  const std::optional<CheckpointRecord> record = file.best();
  if (!record || record->best_watched != watched_ || !record->best) return std::nullopt;
  Restored restored = {*record->best, record->loop.place, {}};
  for (const Copy& copy : copies_) restored.values.push_back(copy.target->allocate());
  for (const Updater::StateValues& each : views(&restored.values)) file.read_best(each);
  return restored;
}

void BestValues::adopt(Restored restored, const DataNames& names) {
  for (size_t i = 0; i < copies_.size(); ++i) {
    const SetWrite write(*copies_[i].target_gate);
    copies_[i].target->replace(std::move(restored.values[i]));
    copies_[i].target->set_names(names);
  }
  best_.set(restored.value);
  place_ = restored.place;
}

}  // namespace tenon::host

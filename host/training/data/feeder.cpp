// SPDX-License-Identifier: Apache-2.0
#include "host/training/data/feeder.h"

#include <algorithm>

#include "base/nearest.h"
#include "core/error.h"
#include "host/readers/reader.h"

namespace tenon::host {

Feeder::Feeder(const Machine& machine, const std::vector<Slot>& slots,
               const std::map<std::string, std::string>& slot_map)
    : arrays_(machine.feeds().size()) {
  std::vector<std::string> names;
  for (const Slot& slot : slots) names.push_back(slot.name);
  for (const auto& [slot, layer] : slot_map)
    if (std::find(names.begin(), names.end(), slot) == names.end())
      fail(TN_INVALID, SubjectName{slot}, "feeding: the reader has no slot \"", slot, "\"",
           base::suggestion(slot, names));
  for (const Feed& feed : machine.feeds()) {
    const auto feeds_layer = [&](const std::string& slot) {
      const auto mapped = slot_map.find(slot);
      return (mapped == slot_map.end() ? slot : mapped->second) == feed.name;
    };
    const auto slot = std::find_if(names.begin(), names.end(), feeds_layer);
    const auto second = slot == names.end() ? slot : std::find_if(slot + 1, names.end(), feeds_layer);
    if (second != names.end())
      fail(TN_INVALID, SubjectName{feed.name}, "data layer \"", feed.name, "\": the slots \"", *slot, "\" and \"",
           *second, "\" both feed it");
    const auto elsewhere = slot_map.find(feed.name);
    if (slot == names.end() && elsewhere != slot_map.end())
      fail(TN_INVALID, SubjectName{feed.name}, "data layer \"", feed.name,
           "\": no slot of the reader feeds it; the slot of that name feeds \"", elsewhere->second, "\"");
    if (slot == names.end())
      fail(TN_INVALID, SubjectName{feed.name}, "data layer \"", feed.name, "\": no slot of the reader feeds it",
           base::suggestion(feed.name, names));
    const auto number = static_cast<size_t>(slot - names.begin());
    links_.push_back({number, feed.name, slots[number]});
  }
}

const std::vector<ArrayView>& Feeder::arrays(const SampleBlock& minibatch) {
  for (size_t i = 0; i < links_.size(); ++i) arrays_[i] = minibatch.columns()[links_[i].slot].view();
  return arrays_;
}

void Feeder::check_names(const ParameterSet& set) const {
  for (const Link& link : links_)
    require_known("data layer \"" + link.data_layer + "\"", link.source, set.names(), link.data_layer);
}

// Adds what is unknown of data layers. Known names stay: the reader may have only a part of them.
void Feeder::keep_names(ParameterSet& set) const {
  DataNames names = set.names();
  for (const Link& link : links_) {
    const NamesRef own = known_of(link.source);
    const auto [entry, fresh] = names.try_emplace(link.data_layer, own);
    if (fresh) continue;
    Names all = entry->second->count > 0 ? *entry->second : *own;
    all.columns = entry->second->columns != nullptr ? entry->second->columns : own->columns;
    all.dtype = own->dtype;
    all.shape = own->shape;
    all.index_limit = own->index_limit;
    entry->second = std::make_shared<Names>(std::move(all));
  }
  set.set_names(std::move(names));
}

}  // namespace tenon::host

// SPDX-License-Identifier: Apache-2.0
#include "host/plugins/set/plugin_options.h"

#include <nlohmann/json.hpp>

namespace tenon::host {

PluginOptions::PluginOptions(std::vector<Attribute> declared, const SetPlugin* entry) : declared_(std::move(declared)) {
  Values given;
  if (entry != nullptr)
    for (const auto& [name, option] : entry->options) given.emplace(name, option.value);
  try {
    values_ = resolve(declared_, given, "option");
  } catch (const Error& error) {
    if (error.code() != TN_INVALID) throw;
    if (entry == nullptr) fail(TN_REFUSED, "no plugin set states its options: ", error.message());
    const auto at = entry->options.find(error.subject());
    fail(TN_REFUSED, at == entry->options.end() ? entry->place : at->second.place, ": ", error.message());
  }
  view_ = std::make_unique<const AttributesView>(declared_, values_);
}

nlohmann::json PluginOptions::json() const {
  nlohmann::json result = nlohmann::json::object();
  for (size_t i = 0; i < declared_.size(); ++i) result[declared_[i].name] = to_json(values_[i]);
  return result;
}

void OptionTable::set(const Items& items) {
  const std::lock_guard lock(mutex_);
  auto options = options_;
  auto kept = kept_;
  for (const auto& [id, each] : items) {
    kept.push_back(each);
    options[id] = each.get();
  }
  options_.swap(options);
  kept_.swap(kept);
}

const tn_attributes* OptionTable::find(const char* id) const noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = options_.find(std::string_view(id));
  return found == options_.end() ? nullptr : found->second->get();
}

}  // namespace tenon::host

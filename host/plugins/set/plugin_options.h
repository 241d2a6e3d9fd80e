// The options of plugins, which the deployer of a host sets in its plugin set. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/attribute.h"
#include "host/plugins/set/plugin_set.h"

namespace tenon::host {

// The options of one plugin, with the values that hold on one host.
class PluginOptions {
 public:
  // declared: of the manifest. entry: what the set states of the plugin; null: the defaults. Throws TN_REFUSED, with
  // the place in the set, for a value that the plugin does not take, and if a required one is missing.
  PluginOptions(std::vector<Attribute> declared, const SetPlugin* entry);

  [[nodiscard]] const tn_attributes* get() const { return view_->get(); }
  [[nodiscard]] const std::vector<Value>& values() const { return values_; }
  // {name: value} of all options.
  [[nodiscard]] nlohmann::json json() const;

 private:
  std::vector<Attribute> declared_;
  std::vector<Value> values_;
  std::unique_ptr<const AttributesView> view_;
};

// The options of all plugins of a host by id, which plugins ask for through "tenon.options/1". Any thread may call it.
class OptionTable {
 public:
  using Items = std::vector<std::pair<std::string, std::shared_ptr<const PluginOptions>>>;
  // Replaces the options of the plugins with these ids. What find returned before stays valid as long as the table.
  // Changes nothing if it throws.
  void set(const Items& items);
  // Returns null for an id without options.
  [[nodiscard]] const tn_attributes* find(const char* id) const noexcept;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, const PluginOptions*, std::less<>> options_;
  std::vector<std::shared_ptr<const PluginOptions>> kept_;
};

}  // namespace tenon::host

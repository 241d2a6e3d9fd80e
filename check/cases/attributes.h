// Attributes of components as JSON. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/attribute.h>

#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

#include "base/not_copied.h"

namespace tenon::check {

using nlohmann::json;

// Returns the attributes of a JSON object as a component of the schema declares them ("attributes" of a manifest).
// Throws Fault for one that is not declared or has another kind.
[[nodiscard]] Attributes attributes_of(const json& values, const json& schema);

// The values of a component's attributes as its plugin gets them, in the order of the schema: those of a JSON object,
// else the defaults.
class PluginValues : base::NotCopied {
 public:
  // Throws Fault as attributes_of does, and without a value for one that is required.
  PluginValues(const json& values, const json& schema);
  // Valid as long as this.
  [[nodiscard]] const std::vector<tn_value>& get() const { return values_; }

 private:
  std::deque<Value> held_;
  std::deque<std::vector<const char*>> texts_;
  std::vector<tn_value> values_;
};

// Numbers of the attribute kinds in a manifest are those of tenon/attribute.h. Returns a short text of a case's
// attributes: `size = 3, bias = true`; "" without.
[[nodiscard]] std::string text_of(const json& attributes);

}  // namespace tenon::check

// Attributes of components as JSON. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <tenon/tenon.hpp>

namespace tenon::check {

using nlohmann::json;

// Returns the attributes of a JSON object as a component of the schema declares them ("attributes" of a manifest).
// Throws Fault for one that is not declared or has another kind.
[[nodiscard]] Attributes attributes_of(const json& values, const json& schema);

// Numbers of the attribute kinds in a manifest are those of tenon/attribute.h. Returns a short text of a case's
// attributes: `size = 3, bias = true`; "" without.
[[nodiscard]] std::string text_of(const json& attributes);

}  // namespace tenon::check

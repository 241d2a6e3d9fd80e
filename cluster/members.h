// Members of JSON that others have written: what is not of the expected type is as if it were not there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cluster/yaml.h"

namespace tenon::cluster {

// Parses a text from a server. What lies deeper than in any answer of Kubernetes is left out; null if it is no JSON.
[[nodiscard]] json parse_json(std::string_view text);

// Returns a member of an object; null without it, or if `object` is none.
[[nodiscard]] const json& member_of(const json& object, const char* key);
// Returns a member of an object in an object: metadata, name.
[[nodiscard]] const json& member_of(const json& object, const char* key, const char* key_in_it);
// Returns a text: "" without it.
[[nodiscard]] std::string text_of(const json& object, const char* key);
[[nodiscard]] std::string text_of(const json& object, const char* key, const char* key_in_it);
[[nodiscard]] int64_t number_of(const json& object, const char* key, int64_t otherwise);
// Returns a list: an empty one without it.
[[nodiscard]] const json& list_of(const json& object, const char* key);

}  // namespace tenon::cluster

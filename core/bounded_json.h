// Parses JSON from untrusted files. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

namespace tenon::core {

constexpr int kMostJsonLevels = 16;
constexpr size_t kMostJsonValues = size_t{1} << 23;

// Returns a discarded value if `text` is not JSON, is nested deeper than kMostJsonLevels or has more than
// kMostJsonValues values. The parser stops there: the rest of the text takes neither time nor memory.
[[nodiscard]] inline nlohmann::json bounded_json(const std::string& text) {
  struct Stop {};
  size_t values = 0;
  using Event = nlohmann::json::parse_event_t;
  const auto guard = [&](int depth, Event event, nlohmann::json&) {
    const bool begins = event == Event::object_start || event == Event::array_start;
    values += begins || event == Event::value ? 1 : 0;
    if (depth + (begins ? 1 : 0) > kMostJsonLevels || values > kMostJsonValues) throw Stop();
    return true;
  };
  try {
    return nlohmann::json::parse(text, guard, false);
  } catch (const Stop&) {
    return nlohmann::json::value_t::discarded;
  }
}

}  // namespace tenon::core

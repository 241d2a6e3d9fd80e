// Parses JSON from untrusted files. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tenon::core {

constexpr int kMostJsonLevels = 16;
constexpr size_t kMostJsonValues = size_t{1} << 23;

// Returns a discarded value if `text` is not JSON, is nested deeper than kMostJsonLevels or has more than
// kMostJsonValues values. The parser stops there: the rest of the text takes neither time nor memory.
[[nodiscard]] nlohmann::json bounded_json(const std::string& text);

}  // namespace tenon::core

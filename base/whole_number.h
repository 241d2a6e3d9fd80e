// Numbers in texts that have nothing else. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace tenon::base {

// Returns the number whose decimal digits, behind a "-" if it is negative, are the whole text; empty for another text,
// and for a number that the type cannot hold.
template <typename Integer>
[[nodiscard]] std::optional<Integer> whole_number(std::string_view text) {
  Integer number = 0;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || last != end) return std::nullopt;
  return number;
}

}  // namespace tenon::base

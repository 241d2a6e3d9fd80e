// Texts for messages: lists, shapes, numbers, and long texts cut between characters.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::base {

// Appends an entry to a list in words: "a", then "a, b".
inline void append(std::string& list, std::string_view entry, std::string_view between = ", ") {
  if (!list.empty()) list += between;
  list += entry;
}

// Returns a list in words: "a, b". text: returns the text of an entry.
template <typename Entries, typename Text = std::identity>
[[nodiscard]] std::string joined(const Entries& entries, const Text& text = {}, std::string_view between = ", ") {
  std::string result;
  for (const auto& entry : entries) append(result, std::invoke(text, entry), between);
  return result;
}

// Returns "a, b and 7 more", with the first 20 names.
[[nodiscard]] std::string listed(const std::vector<std::string>& names);

// Returns "[16, 8]".
[[nodiscard]] std::string to_string(const std::vector<int64_t>& shape);

// Returns a number in so many significant digits, as %g of printf writes it.
[[nodiscard]] std::string brief(double number, int digits);

// Returns the first `most` bytes of a longer text and "...", without a part of a character.
[[nodiscard]] std::string beginning(const std::string& text, size_t most);
// Returns a longer text without its middle, in about `most` bytes: "abc ... xyz".
[[nodiscard]] std::string shortened(const std::string& text, size_t most);

}  // namespace tenon::base

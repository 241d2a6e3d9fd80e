// UTF-8 as RFC 3629 defines it. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tenon::base {

// Returns the bytes of the character that `text` begins with, 1 to 4; 0 if it begins with none: `text` is empty, or its
// first bytes are too short, longer than the character needs, a surrogate, or beyond U+10FFFF.
[[nodiscard]] inline size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned first = byte(0);
  if (first < 0x80) return text.empty() ? 0 : 1;
  const size_t length = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0u) != 0x80) return 0;
  if (first == 0xE0 && byte(1) < 0xA0) return 0;
  if (first == 0xED && byte(1) > 0x9F) return 0;
  if (first == 0xF0 && byte(1) < 0x90) return 0;
  if (first == 0xF4 && byte(1) > 0x8F) return 0;
  return length;
}

// Whether a text is valid UTF-8, as model files and messages require.
[[nodiscard]] inline bool is_utf8(std::string_view text) {
  for (size_t length = 0; !text.empty(); text.remove_prefix(length))
    if ((length = utf8_length(text)) == 0) return false;
  return true;
}

// Returns the text if it is UTF-8; else with "?" for each byte that is not ASCII, as messages quote foreign texts.
[[nodiscard]] inline std::string readable_utf8(std::string text) {
  if (!is_utf8(text))
    for (char& each : text)
      if (static_cast<unsigned char>(each) >= 0x80) each = '?';
  return text;
}

}  // namespace tenon::base

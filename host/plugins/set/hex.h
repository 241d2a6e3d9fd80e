// Bytes as hexadecimal digits. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace tenon::host {

// Whether all characters are digits, with letters in lower case.
[[nodiscard]] inline bool is_hex(std::string_view digits) {
  return std::all_of(digits.begin(), digits.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// digits: an even number, as is_hex accepts them.
[[nodiscard]] inline std::string bytes_of(std::string_view digits) {
  const auto value = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes += static_cast<char>(value(digits[i]) * 16 + value(digits[i + 1]));
  return bytes;
}

[[nodiscard]] inline std::string hex_of(std::string_view bytes) {
  std::string digits;
  for (const char byte : bytes) {
    digits += "0123456789abcdef"[static_cast<unsigned char>(byte) >> 4u];
    digits += "0123456789abcdef"[static_cast<unsigned char>(byte) & 15u];
  }
  return digits;
}

}  // namespace tenon::host

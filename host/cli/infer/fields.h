// Fields of CSV, as RFC 4180 has them. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tenon::cli {

// Returns a field, in quotes if it has quotes, line ends or the delimiter.
[[nodiscard]] inline std::string csv_field(const std::string& text, char delimiter = ',') {
  if (text.find_first_of(std::string("\"\r\n") + delimiter) == std::string::npos) return text;
  std::string result = "\"";
  for (const char letter : text) result += letter == '"' ? "\"\"" : std::string(1, letter);
  return result + "\"";
}

}  // namespace tenon::cli

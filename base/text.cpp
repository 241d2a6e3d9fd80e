// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <algorithm>
#include <cstdio>

namespace tenon::base {

namespace {

// Returns the place at which the character begins that has a byte at `at`.
size_t character(const std::string& text, size_t at) {
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xc0u) == 0x80u) --at;
  return at;
}

}  // namespace

std::string listed(const std::vector<std::string>& names) {
  constexpr size_t kMost = 20;
  if (names.size() <= kMost) return joined(names);
  const std::vector<std::string> first(names.begin(), names.begin() + kMost);
  return joined(first) + " and " + std::to_string(names.size() - kMost) + " more";
}

std::string to_string(const std::vector<int64_t>& shape) {
  return "[" + joined(shape, [](int64_t extent) { return std::to_string(extent); }) + "]";
}

std::string brief(double number, int digits) {
  char text[40];
  static_cast<void>(std::snprintf(text, sizeof text, "%.*g", digits, number));
  return text;
}

std::string beginning(const std::string& text, size_t most) {
  return text.size() <= most ? text : text.substr(0, character(text, most)) + "...";
}

std::string shortened(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  return text.substr(0, character(text, most - most / 3)) + " ... " +
         text.substr(character(text, text.size() - most / 3));
}

}  // namespace tenon::base

// The fields of one record, as RFC 4180 has them. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <string>
#include <string_view>

namespace tenon::csv {

// A position in a record. `at` is the beginning of a field, or the delimiter after one.
struct Fields {
  const char* at;
  const char* end;
  char delimiter;

  [[nodiscard]] bool done() const { return at == end; }

  // Returns the field at `at` without its quotes, and moves `at` behind it. If the field is malformed, sets *why and
  // returns null data. room: memory for a text with doubled quotes.
  std::string_view take(std::string& room, const char** why) {
    if (at != end && *at == '"') return take_quoted(room, why);
    const auto* stop = static_cast<const char*>(std::memchr(at, delimiter, static_cast<size_t>(end - at)));
    if (stop == nullptr) stop = end;
    const std::string_view text(at, static_cast<size_t>(stop - at));
    if (std::memchr(at, '"', text.size()) != nullptr) {
      *why = "a quote inside a field that does not begin with one";
      return {};
    }
    at = stop;
    return text;
  }

 private:
  std::string_view take_quoted(std::string& room, const char** why) {
    room.clear();
    const char* from = ++at;
    while (true) {
      const auto* quote = static_cast<const char*>(std::memchr(at, '"', static_cast<size_t>(end - at)));
      if (quote == nullptr) {
        *why = "a quoted field has no end";
        return {};
      }
      at = quote + 1;
      if (at == end || *at == delimiter) {
        const std::string_view rest(from, static_cast<size_t>(quote - from));
        if (room.empty()) return rest;
        return room.append(rest);
      }
      if (*at != '"') {
        *why = "text after the closing quote of a field";
        return {};
      }
      room.append(from, at);  // one of the two quotes
      from = ++at;
    }
  }
};

// The text without spaces and tabs at its ends, except delimiters.
inline std::string_view trimmed(std::string_view text, char delimiter) {
  const auto blank = [&](char c) { return (c == ' ' || c == '\t') && c != delimiter; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace tenon::csv

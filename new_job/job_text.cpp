// SPDX-License-Identifier: Apache-2.0
#include "new_job/job_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/text.h"

namespace tenon::new_job {

std::string toml_text(const std::string& text) {
  bool literal = true;
  for (const char c : text) literal = literal && static_cast<unsigned char>(c) >= 0x20 && c != '\'' && c != 0x7f;
  const bool plain = text.find_first_of("\"\\") == std::string::npos;
  if (literal && !plain) return "'" + text + "'";
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\t') {
      result += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      std::array<char, 8> escape{};
      (void)std::snprintf(escape.data(), escape.size(), "\\u%04x", static_cast<unsigned>(byte));
      result += escape.data();
    } else {
      if (c == '"' || c == '\\') result += '\\';
      result += c;
    }
  }
  return result + "\"";
}

std::string toml_texts(const std::vector<std::string>& texts) { return "[" + base::joined(texts, toml_text) + "]"; }

std::string shown(double number) {
  const double size = std::fabs(number);
  if (size < 1e4 || size >= 1e10) return base::brief(number, 4);
  return std::to_string(std::llround(number));
}

std::string toml_number(double number) {
  std::array<char, 64> digits{};
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  std::string text(digits.data(), end);
  if (error == std::errc() && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string counted(int64_t count, const std::string& one) {
  const std::string plural = one.ends_with("s") ? "es" : "s";
  return std::to_string(count) + " " + one + (count == 1 ? "" : plural);
}

std::string per_cent(int64_t part, int64_t all) {
  return base::brief(100 * static_cast<double>(part) / static_cast<double>(all), 3) + " %";
}

void JobText::comment(const std::string& text, size_t indent) {
  constexpr size_t kColumns = 100;
  const std::string begin = std::string(indent, ' ') + "#";
  std::string line = begin;
  for (size_t from = 0; from <= text.size();) {
    const size_t end = std::min(text.find(' ', from), text.size());
    const std::string word = text.substr(from, end - from);
    if (line.size() + 1 + word.size() > kColumns && line != begin) {
      this->line(line);
      line = begin;
    }
    line += " " + word;
    from = end + 1;
  }
  this->line(line);
}

void JobText::layer(const std::string& comment, const std::string& name, const std::string& type,
                    const std::vector<std::string>& inputs,
                    const std::vector<std::pair<std::string, std::string>>& attributes) {
  line();
  if (!comment.empty()) this->comment(comment);
  line("[[layer]]");
  key("name", toml_text(name));
  key("type", toml_text(type));
  key("inputs", toml_texts(inputs));
  for (const auto& [attribute, value] : attributes) key(attribute, value);
}

}  // namespace tenon::new_job

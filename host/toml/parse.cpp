// SPDX-License-Identifier: Apache-2.0
#include "host/toml/parse.h"

#include <algorithm>
#include <optional>

#include "host/toml/toml.h"

namespace tenon::toml_file {

namespace {

constexpr const char* kSetPrefix = "--set ";

// Returns the --set argument for a value of the command line, else path and line.
Place place_from(const std::string& path, size_t line) {
  return path.rfind(kSetPrefix, 0) == 0 ? path : path + ":" + std::to_string(line);
}
Place place_from(const toml::source_region& region) {
  return place_from(region.path ? *region.path : std::string(), region.begin.line);
}

Node node_of(const toml::node& from) {
  Node result;
  result.place = place_from(from.source());
  from.visit([&](const auto& value) {
    using Kind = std::decay_t<decltype(value)>;
    if constexpr (toml::is_table<Kind>) {
      auto& members = result.value.emplace<Node::Members>();
      for (const auto& [key, each] : value) members.emplace(std::string(key.str()), node_of(each));
      result.is_inline = value.is_inline();
    } else if constexpr (toml::is_array<Kind>) {
      auto& list = result.value.emplace<Node::List>();
      for (const toml::node& each : value) list.push_back(node_of(each));
    } else if constexpr (toml::is_string<Kind> || toml::is_integer<Kind> || toml::is_floating_point<Kind> ||
                         toml::is_boolean<Kind>) {
      result.value = value.get();
    } else {
      result.value = Node::Moment();
    }
  });
  return result;
}

bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }

// Returns the index of the last character of the token at `i`: a comment, a quoted text, or one character. Agrees with
// toml++ as far as the text is valid TOML.
size_t end_of_token(std::string_view text, size_t i) {
  const char c = text[i];
  if (c == '#') return std::min(text.find('\n', i), text.size()) - 1;
  if (c != '"' && c != '\'') return i;
  const std::string three(3, c);
  const std::string quote = text.substr(i, 3) == three ? three : std::string(1, c);
  size_t end = i + quote.size();
  while (end < text.size() && text.substr(end, quote.size()) != quote) end += c == '"' && text[end] == '\\' ? 2 : 1;
  end = std::min(end + quote.size(), text.size()) - 1;
  if (quote == three)  // up to two quotes more belong to the text
    while (end + 1 < text.size() && text[end + 1] == c) ++end;
  return end;
}

size_t newlines(std::string_view text) { return static_cast<size_t>(std::count(text.begin(), text.end(), '\n')); }

// Returns the line of the first non-ASCII character outside of quoted texts and comments, 0 if there is none. `text` is
// valid TOML otherwise.
size_t line_of_stray(std::string_view text) {
  size_t line = 1;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!is_ascii(text[i])) return line;
    const size_t end = end_of_token(text, i);
    line += newlines(text.substr(i, end + 1 - i));
    i = end;
  }
  return 0;
}

// toml++ parses dotted keys recursively, so a very long key could exhaust the stack. Refuses more than kMostDots dots
// outside of texts and comments between two of: newline, '=', ','.
void check_dots(std::string_view text, const std::string& path, const Speaker& speaker) {
  constexpr int kMostDots = 64;
  size_t line = 1;
  int dots = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '.') ++dots;
    if (c == '\n' || c == '=' || c == ',') dots = 0;
    if (dots > kMostDots)
      speaker.fail(place_from(path, line) + ": a key of more than " + std::to_string(kMostDots) + " parts");
    const size_t end = end_of_token(text, i);
    line += newlines(text.substr(i, end + 1 - i));
    i = end;
  }
}

toml::table parse_any(std::string_view text, const std::string& path, const Speaker& speaker) {
  check_dots(text, path, speaker);
  try {
    return toml::parse(text, path);
  } catch (const toml::parse_error& error) {
    speaker.fail(place_from(error.source()) + ": " + std::string(error.description()));
  }
}

// toml++ 3.3 assumes that non-ASCII characters stand only where TOML allows them. So the text is first parsed with each
// such byte spelled in ASCII. If that is valid TOML, line_of_stray finds misplaced characters by quotes and comments.
void check_characters(std::string_view text, const std::string& path, const Speaker& speaker) {
  if (std::all_of(text.begin(), text.end(), is_ascii)) return;
  std::string spelled;
  for (const char c : text) {
    if (is_ascii(c))
      spelled += c;
    else
      spelled += "x" + std::to_string(static_cast<unsigned char>(c));
  }
  (void)parse_any(spelled, path, speaker);
  const size_t line = line_of_stray(text);
  if (line > 0)
    speaker.fail(place_from(path, line) +
                 ": a character outside ASCII may stand only in a quoted text or in a comment");
}

}  // namespace

Node parse(std::string_view text, const std::string& path, const Speaker& speaker) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) text.remove_prefix(kByteOrderMark.size());
  check_characters(text, path, speaker);
  Node result = node_of(parse_any(text, path, speaker));
  result.place = path;
  return result;
}

}  // namespace tenon::toml_file

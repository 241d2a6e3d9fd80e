// SPDX-License-Identifier: Apache-2.0
#include "host/toml/parse.h"

#include <algorithm>
#include <optional>
#include <vector>

// toml++ 3.3 asserts conditions that untrusted text can break ("[[["); with NDEBUG it lets the compiler assume them.
// The parser itself reports such text properly. So assertions are turned off here, and NDEBUG is not defined.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expression) static_assert(true)
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

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

// Bounds what toml++ parses recursively, and what is copied and destroyed so: the parts of a key, the brackets around a
// value, and the tables around it, which keys and headers with dots make. Enough for every job, and little enough for a
// stack of 128 KiB. Agrees with toml++ as far as the text is valid TOML; there the parser stops.
class NestingCheck {
 public:
  NestingCheck(std::string_view text, const std::string& path, Speaker speaker) : path_(path), speaker_(speaker) {
    for (size_t i = 0; i < text.size(); ++i) {
      take(text[i]);
      const size_t end = end_of_token(text, i);
      line_ += newlines(text.substr(i, end + 1 - i));
      i = end;
    }
  }

 private:
  static constexpr size_t kMostDots = 64, kMostBrackets = 32, kMostTables = 128;

  // A character outside of texts and comments.
  void take(char c) {
    if (c == '.') ++dots_;
    if (c == '[' || c == '{') open();
    if ((c == ']' || c == '}') && !brackets_.empty()) {
      tables_ -= brackets_.back();
      brackets_.pop_back();
    }
    if (c == '\n' && brackets_.empty()) {
      if (is_header_) header_ = dots_;
      is_header_ = is_value_ = false;
    }
    if (c == '=') {
      key_ = dots_;
      is_value_ = true;
    }
    if (c == ',' || c == '\n') key_ = 0;
    if (c == ',' || c == '\n' || c == '=') dots_ = 0;
    if (dots_ > kMostDots) fail("a key of more than ", kMostDots, " parts");
    if (brackets_.size() > kMostBrackets) fail("more than ", kMostBrackets, " brackets within each other");
    if (header_ + tables_ + key_ + dots_ > kMostTables) fail("more than ", kMostTables, " tables within each other");
  }
  void open() {
    if (brackets_.empty() && !is_value_) {
      is_header_ = true;
      header_ = 0;
    }
    brackets_.push_back(key_ + 1);
    tables_ += key_ + 1;
    key_ = dots_ = 0;
  }
  [[noreturn]] void fail(const char* what, size_t most, const char* of) const {
    toml_file::fail(speaker_, place_from(path_, line_) + ": " + what + std::to_string(most) + of);
  }

  const std::string& path_;
  Speaker speaker_;
  size_t line_ = 1;
  size_t dots_ = 0;               // of the key, or of the header
  size_t key_ = 0;                // dots of the key before "="
  size_t header_ = 0;             // dots of the last header
  std::vector<size_t> brackets_;  // that are open, each with the tables that it and its key add
  size_t tables_ = 0;             // of all these
  bool is_header_ = false, is_value_ = false;
};

toml::table parse_any(std::string_view text, const std::string& path, Speaker speaker) {
  (void)NestingCheck(text, path, speaker);
  try {
    return toml::parse(text, path);
  } catch (const toml::parse_error& error) {
    fail(speaker, place_from(error.source()) + ": " + std::string(error.description()));
  }
}

// toml++ 3.3 assumes that non-ASCII characters stand only where TOML allows them. So the text is first parsed with each
// such byte spelled in ASCII. If that is valid TOML, line_of_stray finds misplaced characters by quotes and comments.
void check_characters(std::string_view text, const std::string& path, Speaker speaker) {
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
    fail(speaker,
         place_from(path, line) + ": a character outside ASCII may stand only in a quoted text or in a comment");
}

}  // namespace

Node parse(std::string_view text, const std::string& path, Speaker speaker) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) text.remove_prefix(kByteOrderMark.size());
  check_characters(text, path, speaker);
  Node result = node_of(parse_any(text, path, speaker));
  result.place = path;
  return result;
}

}  // namespace tenon::toml_file

// SPDX-License-Identifier: Apache-2.0
#include "host/cli/job/toml_tree.h"

#include <algorithm>

#include "host/cli/cli.h"
#include "host/cli/job/toml.h"
#include "host/cli/suggest.h"

namespace tenon::cli {

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

// Returns the values of a list if all of them are of type Element.
template <typename Element>
std::optional<std::vector<Element>> all(const Node::List& list) {
  std::vector<Element> result;
  for (const Node& entry : list) {
    const auto* value = entry.get<Element>();
    if (value == nullptr) return std::nullopt;
    result.push_back(*value);
  }
  return result;
}

std::optional<double> number_of(const Node& node) {
  if (const auto* integer = node.get<int64_t>()) return static_cast<double>(*integer);
  if (const auto* number = node.get<double>()) return *number;
  return std::nullopt;
}

// Returns the numbers of a list as floats, also if integers and floats are mixed.
std::optional<std::vector<double>> all_numbers(const Node::List& list) {
  std::vector<double> result;
  for (const Node& entry : list) {
    const auto number = number_of(entry);
    if (!number) return std::nullopt;
    result.push_back(*number);
  }
  return result;
}

std::optional<Value> value_of(const Node& node) {
  if (const auto* text = node.get<std::string>()) return Value(*text);
  if (const auto* flag = node.get<bool>()) return Value(*flag);
  if (const auto* integer = node.get<int64_t>()) return Value(*integer);
  if (const auto* number = node.get<double>()) return Value(*number);
  const auto* list = node.get<Node::List>();
  if (list == nullptr) return std::nullopt;
  if (auto integers = all<int64_t>(*list)) return Value(std::move(*integers));
  if (auto numbers = all_numbers(*list)) return Value(std::move(*numbers));
  if (auto texts = all<std::string>(*list)) return Value(std::move(*texts));
  return std::nullopt;
}

// As a C string such a text would end at the NUL.
bool has_nul(const std::string& text) { return text.find('\0') != std::string::npos; }

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
void check_dots(std::string_view text, const std::string& path) {
  constexpr int kMostDots = 64;
  size_t line = 1;
  int dots = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '.') ++dots;
    if (c == '\n' || c == '=' || c == ',') dots = 0;
    if (dots > kMostDots)
      throw Failure(kBadConfig,
                    place_from(path, line) + ": a key of more than " + std::to_string(kMostDots) + " parts");
    const size_t end = end_of_token(text, i);
    line += newlines(text.substr(i, end + 1 - i));
    i = end;
  }
}

toml::table parse_any(std::string_view text, const std::string& path) {
  check_dots(text, path);
  try {
    return toml::parse(text, path);
  } catch (const toml::parse_error& error) {
    throw Failure(kBadConfig, place_from(error.source()) + ": " + std::string(error.description()));
  }
}

// toml++ 3.3 assumes that non-ASCII characters stand only where TOML allows them. So the text is first parsed with each
// such byte spelled in ASCII. If that is valid TOML, line_of_stray finds misplaced characters by quotes and comments.
void check_characters(std::string_view text, const std::string& path) {
  if (std::all_of(text.begin(), text.end(), is_ascii)) return;
  std::string spelled;
  for (const char c : text) {
    if (is_ascii(c))
      spelled += c;
    else
      spelled += "x" + std::to_string(static_cast<unsigned char>(c));
  }
  (void)parse_any(spelled, path);
  const size_t line = line_of_stray(text);
  if (line > 0)
    throw Failure(kBadConfig, place_from(path, line) +
                                  ": a character outside ASCII may stand only in a quoted text or in a comment");
}

}  // namespace

std::string kind_of(const Node& node) {
  if (node.is_table()) return "a table";
  if (node.get<Node::List>() != nullptr) return "a list";
  if (const auto* text = node.get<std::string>()) return "the text \"" + shortened(*text, 90) + "\"";
  if (const auto* integer = node.get<int64_t>()) return "the integer " + std::to_string(*integer);
  if (node.get<double>() != nullptr) return "a number with a fraction";
  if (const auto* flag = node.get<bool>()) return *flag ? "true" : "false";
  return "a date or time";
}

Node parse_toml(std::string_view text, const std::string& path) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) text.remove_prefix(kByteOrderMark.size());
  check_characters(text, path);
  Node result = node_of(parse_any(text, path));
  result.place = path;
  return result;
}

void Section::fail(const Place& place, const std::string& message) const {
  throw Failure(kBadConfig, place + ": " + (what_.empty() ? "" : what_ + ": ") + message);
}

void Section::wrong(const std::string& key, const Node& node, const std::string& expected) const {
  fail(node.place, "key \"" + key + "\": expected " + expected + ", got " + kind_of(node));
}

void Section::check_text(const std::string& key, const Node& node, const std::string& text) const {
  if (has_nul(text)) fail(node.place, "key \"" + key + "\": the text \"" + text + "\" has a NUL in it");
}

const Node* Section::find(const std::string& key) {
  asked_.insert(key);
  return table_.find(key);
}

std::optional<std::string> Section::string(const std::string& key) {
  const Node* node = find(key);
  if (node == nullptr) return std::nullopt;
  const auto* value = node->get<std::string>();
  if (value == nullptr) wrong(key, *node, "a text");
  check_text(key, *node, *value);
  if (value->empty()) wrong(key, *node, "a text that is not empty");
  return *value;
}

std::optional<int64_t> Section::integer(const std::string& key, int64_t minimum, int64_t maximum) {
  const Node* node = find(key);
  if (node == nullptr) return std::nullopt;
  const auto* value = node->get<int64_t>();
  if (value == nullptr || *value < minimum || *value > maximum) {
    const bool open = maximum == INT64_MAX;
    wrong(key, *node,
          "an integer " + (open ? "of at least " + std::to_string(minimum)
                                : "from " + std::to_string(minimum) + " to " + std::to_string(maximum)));
  }
  return *value;
}

std::optional<double> Section::number(const std::string& key) {
  const Node* node = find(key);
  if (node == nullptr) return std::nullopt;
  const auto value = number_of(*node);
  if (!value) wrong(key, *node, "a number");
  return value;
}

std::optional<bool> Section::boolean(const std::string& key) {
  const Node* node = find(key);
  if (node == nullptr) return std::nullopt;
  const auto* value = node->get<bool>();
  if (value == nullptr) wrong(key, *node, "true or false");
  return *value;
}

std::optional<std::vector<std::string>> Section::strings(const std::string& key, bool gaps) {
  const Node* node = find(key);
  if (node == nullptr) return std::nullopt;
  std::optional<std::vector<std::string>> result;
  if (const auto* one = node->get<std::string>()) result = {*one};
  if (const auto* list = node->get<Node::List>()) result = all<std::string>(*list);
  if (!result) wrong(key, *node, "a list of names");
  for (const std::string& name : *result) {
    check_text(key, *node, name);
    if (name.empty() && !gaps) wrong(key, *node, "a list of names that are not empty");
  }
  return result;
}

const Node* Section::table(const std::string& key) {
  const Node* node = find(key);
  if (node == nullptr) return nullptr;
  if (!node->is_table()) wrong(key, *node, "a table");
  return node;
}

void Section::missing(const std::string& key) const {
  // A misspelt key is more likely than a missing one.
  for (const auto& [name, node] : *table_.get<Node::Members>()) {
    if (!asked_.contains(name) && !nearest(name, {key}).empty())
      fail(node.place, "unknown key \"" + name + "\"; did you mean \"" + key + "\"?");
  }
  fail(place(), "key \"" + key + "\" is missing");
}

void Section::finish() const {
  for (const auto& [name, node] : *table_.get<Node::Members>())
    if (!asked_.contains(name)) fail(node.place, "unknown key \"" + name + "\"" + suggestion(name, known()));
}

void Section::take_attributes(JobType& to) const {
  const auto take = [&](const auto& self, const Node& table, const std::string& prefix) -> void {
    for (const auto& [name, node] : *table.get<Node::Members>()) {
      if (prefix.empty() && asked_.contains(name)) continue;
      const std::string full = prefix + name;
      if (name.empty()) fail(node.place, "a key is empty");
      if (has_nul(name)) fail(node.place, "the key \"" + full + "\" has a NUL in it");
      if (node.is_table()) {
        self(self, node, full + ".");
        continue;
      }
      std::optional<Value> value = value_of(node);
      if (!value) wrong(full, node, "true, false, a number, a text, or a list of numbers or of texts");
      if (const auto* text = std::get_if<std::string>(&value->held())) check_text(full, node, *text);
      if (const auto* texts = std::get_if<std::vector<std::string>>(&value->held()))
        for (const std::string& text : *texts) check_text(full, node, text);
      to.attributes.push_back({full, std::move(*value)});
      to.places[full] = node.place;
    }
  };
  take(take, table_, "");
}

}  // namespace tenon::cli

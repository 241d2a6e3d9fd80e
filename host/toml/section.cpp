// SPDX-License-Identifier: Apache-2.0
#include "host/toml/section.h"

#include <algorithm>

#include "base/nearest.h"
#include "base/text.h"

namespace tenon::toml_file {

std::optional<double> number_of(const Node& node) {
  if (const auto* integer = node.get<int64_t>()) return static_cast<double>(*integer);
  if (const auto* number = node.get<double>()) return *number;
  return std::nullopt;
}

std::string kind_of(const Node& node) {
  constexpr size_t kMost = 90;  // bytes
  if (node.is_table()) return "a table";
  if (node.get<Node::List>() != nullptr) return "a list";
  if (const auto* text = node.get<std::string>()) return "the text \"" + base::shortened(*text, kMost) + "\"";
  if (const auto* integer = node.get<int64_t>()) return "the integer " + std::to_string(*integer);
  if (node.get<double>() != nullptr) return "a number with a fraction";
  if (const auto* flag = node.get<bool>()) return *flag ? "true" : "false";
  return "a date or time";
}

void Section::fail(const Place& place, const std::string& message) const {
  toml_file::fail(speaker_, place + ": " + (what_.empty() ? "" : what_ + ": ") + message);
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
    if (!asked_.contains(name) && !base::nearest(name, {key}).empty())
      fail(node.place, "unknown key \"" + name + "\"; did you mean \"" + key + "\"?");
  }
  fail(place(), "key \"" + key + "\" is missing");
}

void Section::finish() const {
  for (const auto& [name, node] : *table_.get<Node::Members>())
    if (!asked_.contains(name)) fail(node.place, "unknown key \"" + name + "\"" + base::suggestion(name, known()));
}

}  // namespace tenon::toml_file

// SPDX-License-Identifier: Apache-2.0
#include "host/cli/job/reader_metadata.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <iterator>

#include "base/text.h"
#include "host/cli/cli.h"
#include "host/cli/job/toml_tree.h"

namespace tenon::cli {

namespace {

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char letter : text) {
    char escape[8];
    std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(letter)));
    const bool control = static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f;
    if (letter == '"' || letter == '\\') result += '\\';
    result += control ? escape : std::string(1, letter);
  }
  return result + "\"";
}

std::string number_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  char text[40];
  const std::string digits(text, std::to_chars(text, text + sizeof text, number).ptr);
  return digits.find_first_of(".e") == std::string::npos ? digits + ".0" : digits;
}

std::string key_text(const std::string& key) {
  const std::string bare = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
  return !key.empty() && key.find_first_not_of(bare) == std::string::npos ? key : quoted(key);
}

std::string value_text(const Node& node) {
  if (const auto* text = node.get<std::string>()) return quoted(*text);
  if (const auto* flag = node.get<bool>()) return *flag ? "true" : "false";
  if (const auto* integer = node.get<int64_t>()) return std::to_string(*integer);
  if (const auto* number = node.get<double>()) return number_text(*number);
  if (const auto* list = node.get<Node::List>()) return "[" + base::joined(*list, value_text, ", ") + "]";
  const auto member = [](const auto& entry) { return key_text(entry.first) + " = " + value_text(entry.second); };
  if (const auto* members = node.get<Node::Members>()) return "{" + base::joined(*members, member, ", ") + "}";
  throw Failure(kInternal, node.place + ": a value that no reader takes");
}

// Whether a key says where the data of the training is, divides or orders it, or names a file that is written.
bool is_left_out(const std::string& key) {
  static constexpr const char* kKeys[] = {"hold_out", "held_out",  "first_n", "shard",   "shards",
                                          "shuffle",  "drop_last", "bucket",  "prefetch"};
  const auto same = [&](const char* other) { return key == other; };
  return std::any_of(std::begin(kKeys), std::end(kKeys), same) ||
         std::any_of(std::begin(kDataPlaces), std::end(kDataPlaces), same) || key.rfind("save", 0) == 0;
}

// Removes these keys of a reader's table, and of those of its parts.
void strip(Node& table) {
  std::erase_if(*table.get<Node::Members>(), [](const auto& entry) { return is_left_out(entry.first); });
  Node* const parts = table.find("part");
  if (parts == nullptr || !parts->is_list_of_tables()) return;
  for (Node& part : *parts->get<Node::List>()) strip(part);
}

// Returns a key that `strip` would remove, "" if there is none.
std::string left_out_key(const Node& table) {
  for (const auto& [key, value] : *table.get<Node::Members>()) {
    if (is_left_out(key)) return key;
    if (key != "part" || !value.is_list_of_tables()) continue;
    for (const Node& part : *value.get<Node::List>())
      if (std::string inner = left_out_key(part); !inner.empty()) return inner;
  }
  return "";
}

}  // namespace

std::string reader_metadata(const JobReader& reader) {
  Node table = reader.table;
  strip(table);
  std::string result;
  for (const auto& [key, value] : *table.get<Node::Members>())
    result += key_text(key) + " = " + value_text(value) + "\n";
  return result;
}

Node reader_table(std::string_view text, const std::string& path) {
  Node table = parse_toml(text, path + ": " + kReaderMetadata);
  if (const std::string key = left_out_key(table); !key.empty())
    throw Failure(kBadData, path + ": " + kReaderMetadata + ": key \"" + key +
                                "\": a model file says how data is read, not where it is");
  return table;
}

}  // namespace tenon::cli

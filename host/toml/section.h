// The tables of a TOML file: sections record the keys that were read, and messages name places.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "host/toml/node.h"
#include "host/toml/parse.h"

namespace tenon::toml_file {

// The numbers of a node as a float, if it is a number.
[[nodiscard]] std::optional<double> number_of(const Node& node);
// Returns whether a text would end early as a C string.
[[nodiscard]] inline bool has_nul(const std::string& text) { return text.find('\0') != std::string::npos; }
// Returns the values of a list if all of them are of type Element.
template <typename Element>
[[nodiscard]] std::optional<std::vector<Element>> all(const Node::List& list) {
  std::vector<Element> result;
  for (const Node& entry : list) {
    const auto* value = entry.get<Element>();
    if (value == nullptr) return std::nullopt;
    result.push_back(*value);
  }
  return result;
}

// One table of the file. Each getter marks its key as known.
class Section {
 public:
  // what: the section's name in messages, "" for the top level: "[updater]".
  Section(const Node& table, std::string what, Speaker speaker)
      : table_(table), what_(std::move(what)), speaker_(speaker) {}

  [[nodiscard]] const Place& place() const { return table_.place; }
  [[nodiscard]] const Node* find(const std::string& key);
  // Each returns nothing (find and table: null) if the key is absent.
  [[nodiscard]] std::optional<std::string> string(const std::string& key);
  [[nodiscard]] std::optional<int64_t> integer(const std::string& key, int64_t minimum, int64_t maximum);
  [[nodiscard]] std::optional<double> number(const std::string& key);
  [[nodiscard]] std::optional<bool> boolean(const std::string& key);
  // A list of texts, or one text. gaps: texts may be empty.
  [[nodiscard]] std::optional<std::vector<std::string>> strings(const std::string& key, bool gaps = false);
  [[nodiscard]] const Node* table(const std::string& key);

  [[noreturn]] void missing(const std::string& key) const;
  // Refuses every key that was not read.
  void finish() const;

  // Reports "<place>: <what>: <message>".
  [[noreturn]] void fail(const Place& place, const std::string& message) const;
  [[noreturn]] void wrong(const std::string& key, const Node& node, const std::string& expected) const;

 protected:
  [[nodiscard]] const Node& node() const { return table_; }
  [[nodiscard]] bool was_read(const std::string& key) const { return asked_.contains(key); }
  // Refuses a text with a NUL in it.
  void check_text(const std::string& key, const Node& node, const std::string& text) const;

 private:
  [[nodiscard]] std::vector<std::string> known() const { return {asked_.begin(), asked_.end()}; }

  const Node& table_;
  std::string what_;
  Speaker speaker_;
  std::set<std::string> asked_;
};

}  // namespace tenon::toml_file

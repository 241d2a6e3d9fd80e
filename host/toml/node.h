// The values of a TOML file. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tenon::toml_file {

// The place of a value, for messages: "mlp.toml:12" or "--set layer.hidden.size=64"; of a layer of a block
// "mlp.toml:12: in block "tower" at blocks.toml:3".
using Place = std::string;

// A value of TOML. A copy keeps its place, unlike those of toml++.
struct Node {
  struct Moment {};  // a date or a time, which no key takes
  using List = std::vector<Node>;
  using Members = std::map<std::string, Node, std::less<>>;

  std::variant<Members, List, std::string, int64_t, double, bool, Moment> value;
  Place place;
  bool is_inline = false;  // of a table: { ... }

  template <typename Held>
  [[nodiscard]] const Held* get() const {
    return std::get_if<Held>(&value);
  }
  template <typename Held>
  [[nodiscard]] Held* get() {
    return std::get_if<Held>(&value);
  }
  [[nodiscard]] bool is_table() const { return get<Members>() != nullptr; }
  // Whether it is a list of one table or more: [[layer]].
  [[nodiscard]] bool is_list_of_tables() const {
    const List* list = get<List>();
    if (list == nullptr || list->empty()) return false;
    for (const Node& entry : *list)
      if (!entry.is_table()) return false;
    return true;
  }
  // Returns the member `key` of a table, else null.
  [[nodiscard]] const Node* find(std::string_view key) const {
    const Members* members = get<Members>();
    if (members == nullptr) return nullptr;
    const auto found = members->find(key);
    return found == members->end() ? nullptr : &found->second;
  }
  [[nodiscard]] Node* find(std::string_view key) { return const_cast<Node*>(std::as_const(*this).find(key)); }
  // Returns the text `key` of a table, null if it is absent or no text.
  [[nodiscard]] const std::string* text(std::string_view key) const {
    const Node* node = find(key);
    return node == nullptr ? nullptr : node->get<std::string>();
  }
};

}  // namespace tenon::toml_file

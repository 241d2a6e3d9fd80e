// SPDX-License-Identifier: Apache-2.0
#include "host/cli/job/toml_tree.h"

#include "host/cli/cli.h"

namespace tenon::cli {

using toml_file::all;
using toml_file::has_nul;
using toml_file::number_of;

namespace {

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

}  // namespace

std::exception_ptr mistake(const std::string& message) { return std::make_exception_ptr(Failure(kBadConfig, message)); }

Node parse_toml(std::string_view text, const std::string& path) { return toml_file::parse(text, path, mistake); }

void Section::take_attributes(JobType& to) const {
  const auto take = [&](const auto& self, const Node& table, const std::string& prefix) -> void {
    for (const auto& [name, node] : *table.get<Node::Members>()) {
      if (prefix.empty() && was_read(name)) continue;
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
  take(take, node(), "");
}

JobType type_of(Section& section) {
  JobType result;
  result.place = section.place();
  const auto type = section.string("type");
  if (!type) section.missing("type");
  result.type = *type;
  return result;
}

JobLayer layer_of(const Node& table) {
  const std::string* const given = table.text("name");
  Section section(table, given != nullptr ? "layer \"" + *given + "\"" : "[[layer]]");
  JobLayer result;
  const auto name = section.string("name");
  if (!name) section.missing("name");
  result.name = *name;
  const auto inputs = section.strings("inputs", true);
  if (inputs) {
    result.inputs = *inputs;
    result.inputs_place = section.find("inputs")->place;
  }
  static_cast<JobType&>(result) = type_of(section);
  section.take_attributes(result);
  return result;
}

}  // namespace tenon::cli

// SPDX-License-Identifier: Apache-2.0
#include "check/cases/case_file.h"

#include <toml++/toml.h>

#include <fstream>
#include <iterator>
#include <string>

namespace tenon::check {

namespace {

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& why) {
  throw Error(TN_BAD_CONFIG, file.string() + ": " + why);
}

json json_of(const toml::node& node) {
  if (const toml::table* const table = node.as_table()) {
    json result = json::object();
    for (const auto& [key, value] : *table) result[std::string(key.str())] = json_of(value);
    return result;
  }
  if (const toml::array* const array = node.as_array()) {
    json result = json::array();
    for (const toml::node& value : *array) result.push_back(json_of(value));
    return result;
  }
  if (const auto* const text = node.as_string()) return text->get();
  if (const auto* const integer = node.as_integer()) return integer->get();
  if (const auto* const number = node.as_floating_point()) return number->get();
  if (const auto* const flag = node.as_boolean()) return flag->get();
  return nullptr;  // a date or a time, which no key takes
}

json from_toml(const std::string& text, const std::filesystem::path& file) try {
  const toml::table root = toml::parse(text);
  for (const auto& [key, value] : root)
    if (key.str() != "case") refuse(file, "unknown key \"" + std::string(key.str()) + "\"; expected tables [[case]]");
  return root.contains("case") ? json_of(*root.get("case")) : json::array();
} catch (const toml::parse_error& error) {
  refuse(file, "line " + std::to_string(error.source().begin.line) + ": " + std::string(error.description()));
}

}  // namespace

json read_cases(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw Error(TN_NOT_FOUND, "cannot read the cases \"" + file.string() + "\"");
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  json cases = file.extension() == ".json" ? json::parse(text, nullptr, false) : from_toml(text, file);
  if (!cases.is_array()) refuse(file, "expected a list of cases");
  for (const json& each : cases)
    if (!each.is_object() || !each.contains("type") || !each.at("type").is_string())
      refuse(file, "a case has no text \"type\": " + each.dump());
  return cases;
}

}  // namespace tenon::check

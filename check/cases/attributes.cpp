// SPDX-License-Identifier: Apache-2.0
#include "check/cases/attributes.h"

#include <tenon/plugin.h>

#include <type_traits>
#include <variant>

#include "base/text.h"
#include "check/cases/fault.h"

namespace tenon::check {

namespace {

Value value_of(const json& entry, int kind, const std::string& name) try {
  switch (kind) {
    case TN_ATTR_BOOL:
      return entry.get<bool>();
    case TN_ATTR_INT:
      return entry.get<int64_t>();
    case TN_ATTR_FLOAT:
      return entry.get<double>();
    case TN_ATTR_STRING:
      return entry.get<std::string>();
    case TN_ATTR_INTS:
      return entry.get<std::vector<int64_t>>();
    case TN_ATTR_FLOATS:
      return entry.get<std::vector<double>>();
    default:
      return entry.get<std::vector<std::string>>();
  }
} catch (const json::exception&) {
  throw Fault("the case gives attribute \"" + name + "\" a value of another kind: " + entry.dump());
}

template <typename Entry>
tn_value list_of(int kind, const std::vector<Entry>& entries) {
  tn_value result = {kind, static_cast<uint32_t>(entries.size()), {}};
  if constexpr (std::is_same_v<Entry, int64_t>)
    result.as.ints = entries.data();
  else if constexpr (std::is_same_v<Entry, double>)
    result.as.floats = entries.data();
  else
    result.as.strings = entries.data();
  return result;
}

// `texts` gets the list of a list of texts. Borrows from the value.
tn_value plain_value(int kind, const Value& value, std::deque<std::vector<const char*>>& texts) {
  tn_value result = {kind, 1, {}};
  std::visit(
      [&](const auto& held) {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, std::vector<std::string>>) {
          texts.emplace_back();
          for (const std::string& text : held) texts.back().push_back(text.c_str());
          result = list_of(kind, texts.back());
        } else if constexpr (std::is_same_v<Held, std::string>) {
          result.as.s = held.c_str();
        } else if constexpr (std::is_same_v<Held, double>) {
          result.as.f = held;
        } else if constexpr (std::is_arithmetic_v<Held>) {
          result.as.i = held;
        } else {
          result = list_of(kind, held);
        }
      },
      value.held());
  return result;
}

}  // namespace

PluginValues::PluginValues(const json& values, const json& schema) {
  (void)attributes_of(values, schema);
  for (const json& declared : schema) {
    const std::string name = declared.at("name");
    const json entry = values.contains(name) ? values.at(name) : declared.value("initial", json());
    if (entry.is_null() && declared.value("required", false))
      throw Fault("the attribute \"" + name + "\" is required: give a case with it by --cases");
    const int kind = entry.is_null() ? 0 : declared.at("kind").get<int>();
    if (kind == 0)
      values_.push_back({});
    else
      values_.push_back(plain_value(kind, held_.emplace_back(value_of(entry, kind, name)), texts_));
  }
}

Attributes attributes_of(const json& values, const json& schema) {
  Attributes result;
  for (const auto& [name, value] : values.items()) {
    int kind = 0;
    for (const json& declared : schema)
      if (declared.at("name") == name) kind = declared.at("kind").get<int>();
    if (kind == 0) throw Fault("the case gives attribute \"" + name + "\", which is not declared");
    result.push_back({name, value_of(value, kind, name)});
  }
  return result;
}

std::string text_of(const json& attributes) {
  std::string result;
  for (const auto& [name, value] : attributes.items()) base::append(result, name + " = " + value.dump());
  return result;
}

}  // namespace tenon::check

// Attribute values: conversion, checks, suggestions. SPDX-License-Identifier: Apache-2.0
#include "core/attribute.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/nearest.h"
#include "base/text.h"
#include "core/checked.h"

namespace tenon::core {

namespace {

using nlohmann::json;

// Returns a number as people write it: 3, 0.1, never 1e+06 for a million.
std::string number_text(double number) {
  if (std::nearbyint(number) == number && std::abs(number) < 1e15) return text(static_cast<int64_t>(number));
  return json(number).dump();
}

bool is_list(int32_t kind) { return kind >= TN_ATTR_INTS; }

std::string expectation(const Attribute& attribute) {
  static constexpr const char* kNames[] = {"",       "true or false",      "an integer",        "a number",
                                           "a text", "a list of integers", "a list of numbers", "a list of texts"};
  std::string result = kNames[attribute.kind];
  if (!attribute.choices.empty()) {
    result = is_list(attribute.kind) ? "a list of" : "one of";
    for (size_t i = 0; i < attribute.choices.size(); ++i) result += (i ? ", \"" : " \"") + attribute.choices[i] + "\"";
  }
  const std::string each = is_list(attribute.kind) ? ", each " : " ";
  if (attribute.minimum && attribute.maximum)
    result += each + "between " + number_text(*attribute.minimum) + " and " + number_text(*attribute.maximum);
  else if (attribute.minimum)
    result += each + "of at least " + number_text(*attribute.minimum);
  else if (attribute.maximum)
    result += each + "of at most " + number_text(*attribute.maximum);
  return result;
}

// Returns `value` converted to `kind`, or nothing if it is of another kind.
std::optional<Value> converted(const Value& value, int32_t kind) {
  const auto* integer = std::get_if<int64_t>(&value);
  const auto* integers = std::get_if<std::vector<int64_t>>(&value);
  const bool none = integers != nullptr && integers->empty();  // an empty list is one of every kind
  switch (kind) {
    case TN_ATTR_BOOL:
      if (std::holds_alternative<bool>(value)) return value;
      break;
    case TN_ATTR_INT:
      if (integer != nullptr) return value;
      break;
    case TN_ATTR_FLOAT:
      if (integer != nullptr) return static_cast<double>(*integer);
      if (std::holds_alternative<double>(value)) return value;
      break;
    case TN_ATTR_STRING:
      if (std::holds_alternative<std::string>(value)) return value;
      break;
    case TN_ATTR_INTS:
      if (integers != nullptr) return value;
      if (integer != nullptr) return std::vector<int64_t>{*integer};
      break;
    case TN_ATTR_FLOATS:
      if (std::holds_alternative<std::vector<double>>(value)) return value;
      if (integers != nullptr) return std::vector<double>(integers->begin(), integers->end());
      if (const auto one = converted(value, TN_ATTR_FLOAT)) return std::vector<double>{std::get<double>(*one)};
      break;
    case TN_ATTR_STRINGS:
      if (std::holds_alternative<std::vector<std::string>>(value)) return value;
      if (none) return std::vector<std::string>{};
      if (const auto* one = std::get_if<std::string>(&value)) return std::vector<std::string>{*one};
      break;
    default:
      break;
  }
  return std::nullopt;
}

template <typename Element>
bool in_range(const Attribute& attribute, Element element) {
  const auto number = static_cast<double>(element);
  return std::isfinite(number) && (!attribute.minimum || number >= *attribute.minimum) &&
         (!attribute.maximum || number <= *attribute.maximum);
}
bool in_range(const Attribute& attribute, const std::string& element) {
  return attribute.choices.empty() ||
         std::find(attribute.choices.begin(), attribute.choices.end(), element) != attribute.choices.end();
}

// Returns `value` converted to the declared kind if it is in the declared range, else nothing.
std::optional<Value> accepted(const Attribute& attribute, const Value& value) {
  std::optional<Value> result = converted(value, attribute.kind);
  if (!result) return std::nullopt;
  const bool sound = std::visit(
      [&](const auto& held) {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, Absent> || std::is_same_v<Held, bool>)
          return true;
        else if constexpr (std::is_arithmetic_v<Held> || std::is_same_v<Held, std::string>)
          return in_range(attribute, held);
        else
          return std::all_of(held.begin(), held.end(), [&](const auto& entry) { return in_range(attribute, entry); });
      },
      *result);
  if (!sound) return std::nullopt;
  return result;
}

std::string text_from(const json& value) {
  auto result = value.get<std::string>();
  if (result.find('\0') != std::string::npos) fail(TN_INVALID, "a text has a NUL in it: ", shown(result));
  return result;
}

template <typename Element>
std::vector<Element> list_from(const Element* entries, uint32_t count) {
  if (entries == nullptr && count > 0) fail(TN_INVALID, "a list of ", count, " entries is null");
  return std::vector<Element>(entries, entries + count);
}

}  // namespace

Value value_from(const tn_value& value) {
  switch (value.kind) {
    case 0:
      return {};
    case TN_ATTR_BOOL:
      return value.as.i != 0;
    case TN_ATTR_INT:
      return value.as.i;
    case TN_ATTR_FLOAT:
      return value.as.f;
    case TN_ATTR_STRING:
      if (value.as.s == nullptr) fail(TN_INVALID, "a text is null");
      return std::string(value.as.s);
    case TN_ATTR_INTS:
      return list_from(value.as.ints, value.count);
    case TN_ATTR_FLOATS:
      return list_from(value.as.floats, value.count);
    case TN_ATTR_STRINGS: {
      std::vector<std::string> result;
      for (const char* entry : list_from(value.as.strings, value.count)) {
        if (entry == nullptr) fail(TN_INVALID, "entry ", result.size(), " of a list of texts is null");
        result.emplace_back(entry);
      }
      return result;
    }
    default:
      fail(TN_INVALID, "unknown kind of value ", value.kind);
  }
}

tn_value view_of(const Value& value, std::vector<std::vector<const char*>>& strings) {
  tn_value view = {};
  view.count = 1;
  const auto set_list = [&view](int32_t kind, size_t count) {
    view.kind = kind;
    view.count = checked_cast<uint32_t>(count, "entries of a list");
  };
  if (const auto* flag = std::get_if<bool>(&value)) {
    view.kind = TN_ATTR_BOOL;
    view.as.i = *flag ? 1 : 0;
  } else if (const auto* integer = std::get_if<int64_t>(&value)) {
    view.kind = TN_ATTR_INT;
    view.as.i = *integer;
  } else if (const auto* number = std::get_if<double>(&value)) {
    view.kind = TN_ATTR_FLOAT;
    view.as.f = *number;
  } else if (const auto* string = std::get_if<std::string>(&value)) {
    view.kind = TN_ATTR_STRING;
    view.as.s = string->c_str();
  } else if (const auto* integers = std::get_if<std::vector<int64_t>>(&value)) {
    set_list(TN_ATTR_INTS, integers->size());
    view.as.ints = integers->data();
  } else if (const auto* numbers = std::get_if<std::vector<double>>(&value)) {
    set_list(TN_ATTR_FLOATS, numbers->size());
    view.as.floats = numbers->data();
  } else if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
    set_list(TN_ATTR_STRINGS, texts->size());
    std::vector<const char*>& pointers = strings.emplace_back();
    for (const std::string& entry : *texts) pointers.push_back(entry.c_str());
    view.as.strings = pointers.data();
  }
  return view;
}

json to_json(const Value& value) {
  return std::visit(
      [](const auto& held) -> json {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, Absent>)
          return nullptr;
        else
          return held;
      },
      value);
}

std::string shown(const Value& value) {
  if (const auto* number = std::get_if<double>(&value); number != nullptr && !std::isfinite(*number))
    return text(*number);  // JSON cannot represent it
  return base::beginning(to_json(value).dump(-1, ' ', false, json::error_handler_t::replace), 80);
}

Value value_from_json(const json& value) {
  const auto integer = [](const json& number) {
    if (number.is_number_unsigned()) return checked_cast<int64_t>(number.get<uint64_t>(), "integer");
    return number.get<int64_t>();
  };
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return integer(value);
  if (value.is_number_float()) return value.get<double>();
  if (value.is_string()) return text_from(value);
  if (!value.is_array())
    fail(TN_INVALID, "expected true, false, a number, a text or a list, got ", value.is_null() ? "null" : "an object");
  const auto all = [&value](auto test) { return std::all_of(value.begin(), value.end(), test); };
  if (all([](const json& entry) { return entry.is_number_integer(); })) {
    std::vector<int64_t> result;
    for (const json& entry : value) result.push_back(integer(entry));
    return result;
  }
  if (all([](const json& entry) { return entry.is_number(); })) return value.get<std::vector<double>>();
  if (all([](const json& entry) { return entry.is_string(); })) {
    std::vector<std::string> result;
    for (const json& entry : value) result.push_back(text_from(entry));
    return result;
  }
  fail(TN_INVALID, "a list must hold numbers only, or texts only");
}

Attribute Attribute::from(const tn_attribute& attribute) {
  if (attribute.size < offsetof(tn_attribute, maximum) + sizeof attribute.maximum)
    fail(TN_INVALID, "an attribute of ", attribute.size, " bytes ends before \"maximum\"");
  if (attribute.name == nullptr) fail(TN_INVALID, "an attribute has no name");
  Attribute result;
  result.name = attribute.name;
  result.doc = attribute.doc == nullptr ? "" : attribute.doc;
  result.kind = attribute.kind;
  if (result.kind < TN_ATTR_BOOL || result.kind > TN_ATTR_STRINGS)
    fail(TN_INVALID, "attribute \"", result.name, "\" has the unknown kind ", result.kind);
  result.required = (attribute.flags & TN_ATTR_REQUIRED) != 0;
  if ((attribute.has_range & 1u) != 0) result.minimum = attribute.minimum;
  if ((attribute.has_range & 2u) != 0) result.maximum = attribute.maximum;
  if (TN_HAS(&attribute, tn_attribute, choices) && attribute.choices != nullptr)
    for (const char* const* choice = attribute.choices; *choice != nullptr; ++choice)
      result.choices.emplace_back(*choice);
  Value initial;
  try {
    initial = value_from(attribute.initial);
  } catch (const Error& error) {
    fail(TN_INVALID, SubjectName{result.name}, "the default of attribute \"", result.name, "\": ", error.message());
  }
  if (std::holds_alternative<Absent>(initial)) return result;
  const std::optional<Value> sound = accepted(result, initial);
  if (!sound)
    fail(TN_INVALID, SubjectName{result.name}, "the default of attribute \"", result.name, "\": expected ",
         expectation(result), ", got ", shown(initial));
  result.initial = *sound;
  return result;
}

std::vector<Value> resolve(const std::vector<Attribute>& declared, const Values& given, const char* word) {
  for (const auto& [name, value] : given) {
    std::vector<std::string> known;
    for (const Attribute& attribute : declared) known.push_back(attribute.name);
    if (std::find(known.begin(), known.end(), name) == known.end())
      fail(TN_INVALID, SubjectName{name}, "unknown ", word, " \"", name, "\"",
           known.empty() ? text("; there are no ", word, "s here") : base::suggestion(name, known));
  }
  std::vector<Value> result;
  for (const Attribute& attribute : declared) {
    const auto found = given.find(attribute.name);
    if (found == given.end() || std::holds_alternative<Absent>(found->second)) {
      if (attribute.required && std::holds_alternative<Absent>(attribute.initial))
        fail(TN_INVALID, SubjectName{attribute.name}, word, " \"", attribute.name, "\" is missing: expected ",
             expectation(attribute));
      result.push_back(attribute.initial);
      continue;
    }
    std::optional<Value> value = accepted(attribute, found->second);
    if (!value)
      fail(TN_INVALID, SubjectName{attribute.name}, word, " \"", attribute.name, "\": expected ",
           expectation(attribute), ", got ", shown(found->second));
    result.push_back(std::move(*value));
  }
  return result;
}

AttributesView::AttributesView(const std::vector<Attribute>& declared, const std::vector<Value>& values) {
  if (declared.size() != values.size())
    fail(TN_INTERNAL, values.size(), " values for ", declared.size(), " attributes");
  declared_.reserve(declared.size());
  pointers_.reserve(declared.size());
  values_.reserve(declared.size());
  for (const Attribute& attribute : declared) {
    tn_attribute view = {};
    view.size = sizeof view;
    view.kind = attribute.kind;
    view.name = attribute.name.c_str();
    view.doc = attribute.doc.c_str();
    view.flags = attribute.required ? TN_ATTR_REQUIRED : 0;
    view.has_range = (attribute.minimum ? 1u : 0u) | (attribute.maximum ? 2u : 0u);
    view.initial = view_of(attribute.initial, strings_);
    view.minimum = attribute.minimum.value_or(0);
    view.maximum = attribute.maximum.value_or(0);
    if (!attribute.choices.empty()) {
      std::vector<const char*>& choices = strings_.emplace_back();
      for (const std::string& choice : attribute.choices) choices.push_back(choice.c_str());
      choices.push_back(nullptr);
      view.choices = choices.data();
    }
    declared_.push_back(view);
  }
  for (const tn_attribute& attribute : declared_) pointers_.push_back(&attribute);
  for (const Value& value : values) values_.push_back(view_of(value, strings_));
  view_.size = sizeof view_;
  view_.count = checked_cast<uint32_t>(declared_.size(), "attributes");
  view_.declared = pointers_.data();
  view_.values = values_.data();
}

}  // namespace tenon::core

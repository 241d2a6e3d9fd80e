// SPDX-License-Identifier: Apache-2.0
#include "check/cases/attributes.h"

#include <tenon/plugin.h>

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

}  // namespace

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

// SPDX-License-Identifier: Apache-2.0
#include "check/subject.h"

#include <algorithm>

#include "base/text.h"
#include "check/parts.h"

namespace tenon::check {

namespace {

Value value_of(const json& given, int kind, const std::string& name) try {
  switch (kind) {
    case TN_ATTR_BOOL:
      return given.get<bool>();
    case TN_ATTR_INT:
      return given.get<int64_t>();
    case TN_ATTR_FLOAT:
      return given.get<double>();
    case TN_ATTR_STRING:
      return given.get<std::string>();
    case TN_ATTR_INTS:
      return given.get<std::vector<int64_t>>();
    case TN_ATTR_FLOATS:
      return given.get<std::vector<double>>();
    default:
      return given.get<std::vector<std::string>>();
  }
} catch (const json::exception&) {
  throw Fault("the case gives attribute \"" + name + "\" a value of another kind: " + given.dump());
}

}  // namespace

Host Subject::host(const HostChoice& choice) const {
  HostOptions options;
  options.threads = choice.threads;
  options.plugin_paths = folders;
  options.allocator = choice.allocator;
  options.check = choice.checking ? TN_CHECK_ON : TN_CHECK_OFF;
  Host host(options);
  host.add_plugin(&parts());
  return host;
}

bool Subject::offers(const std::string& table) const {
  if (!described.contains("tables")) return true;
  const json& tables = described.at("tables");
  return std::find(tables.begin(), tables.end(), table) != tables.end();
}

bool Subject::serves_rows() const {
  return kind == "provider" &&
         (described.at("id") == TN_ROW_SPARSE_TABLE || described.at("id") == TN_COALESCE_PRODUCTS);
}

Attributes attributes_of(const json& given, const json& schema) {
  Attributes result;
  for (const auto& [name, value] : given.items()) {
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

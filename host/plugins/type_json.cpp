// SPDX-License-Identifier: Apache-2.0
#include "host/plugins/type_json.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

namespace tenon::host {

namespace {

using nlohmann::json;

json to_json(const Port& port) { return {{"name", port.name}, {"doc", port.doc}, {"flags", port.flags}}; }

json to_json(const Attribute& attribute) {
  json result = {
      {"name", attribute.name}, {"doc", attribute.doc}, {"kind", attribute.kind}, {"required", attribute.required}};
  if (!std::holds_alternative<Absent>(attribute.initial)) result["initial"] = core::to_json(attribute.initial);
  if (attribute.minimum) result["minimum"] = *attribute.minimum;
  if (attribute.maximum) result["maximum"] = *attribute.maximum;
  if (!attribute.choices.empty()) result["choices"] = attribute.choices;
  return result;
}

template <typename Entry>
json list_of(const std::vector<Entry>& entries) {
  json result = json::array();
  for (const Entry& entry : entries) result.push_back(to_json(entry));
  return result;
}

// Returns the members that every kind of type has.
template <typename Description>
json common(const Description& described) {
  return {{"type", described.type},
          {"doc", described.doc},
          {"other_names", other_names(described.doc)},
          {"attributes", list_of(described.attributes)}};
}

}  // namespace

std::vector<std::string> other_names(const std::string& doc) {
  constexpr std::string_view kBefore = "Other names: ";
  const size_t at = doc.rfind(kBefore);
  std::vector<std::string> names;
  if (at == std::string::npos) return names;
  names.emplace_back();
  for (size_t i = at + kBefore.size(); i < doc.size() && doc[i] != '.'; ++i) {
    if (doc[i] == ',')
      names.emplace_back();
    else if (doc[i] != ' ')
      names.back() += doc[i];
  }
  return names;
}

const char* role_name(int32_t role) {
  return role == TN_ROLE_COST ? "cost" : role == TN_ROLE_METRIC ? "metric" : "layer";
}

json to_json(const LayerDescription& layer) {
  json result = common(layer);
  result["role"] = role_name(layer.role);
  result["inputs"] = list_of(layer.inputs);
  result["outputs"] = list_of(layer.outputs);
  result["parameters"] = layer.parameters;
  return result;
}

json to_json(const UpdaterDescription& updater) { return common(updater); }
json to_json(const ReaderDescription& reader) { return common(reader); }

json to_json(const CommDescription& comm) {
  json result = common(comm);
  result["traits"] = json::array();
  constexpr std::pair<uint32_t, const char*> kTraits[] = {{TN_COMM_SURVIVES, "survives"},
                                                          {TN_COMM_AUTHENTICATED, "authenticated"},
                                                          {TN_COMM_ENCRYPTED, "encrypted"},
                                                          {TN_COMM_ONE_PER_PROCESS, "one_per_process"}};
  for (const auto& [trait, name] : kTraits)
    if ((comm.traits & trait) != 0) result["traits"].push_back(name);
  return result;
}

}  // namespace tenon::host

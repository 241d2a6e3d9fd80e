// SPDX-License-Identifier: Apache-2.0
#include "host/layers/renames.h"

#include <nlohmann/json.hpp>

#include "core/error.h"

namespace tenon::host {

namespace {

// Returns null if `type` is not a former name.
const TypeRename* find_rename(const std::string& type) {
  for (const TypeRename& rename : kLayerTypeRenames)
    if (type == rename.before) return &rename;
  return nullptr;
}

}  // namespace

std::string present_layer_type(const std::string& type) {
  const TypeRename* const rename = find_rename(type);
  return rename == nullptr ? type : rename->now;
}

void rename_layer_type(std::string& type, Values& attributes) {
  const TypeRename* const rename = find_rename(type);
  if (rename == nullptr) return;
  if (!attributes.emplace(rename->attribute, rename->value).second)
    fail(TN_INVALID, SubjectName{rename->attribute}, "layer type \"", type, "\" is the former name of \"", rename->now,
         "\" with \"", rename->attribute, "\" = ", rename->value, ", which is given as well");
  type = rename->now;
}

void rename_layer_types(nlohmann::json& topology) {
  if (!topology.is_object() || !topology.contains("layers") || !topology.at("layers").is_array()) return;
  for (nlohmann::json& layer : topology.at("layers")) {
    if (!layer.is_object() || !layer.contains("type") || !layer.at("type").is_string()) continue;
    const TypeRename* const rename = find_rename(layer.at("type").get<std::string>());
    if (rename == nullptr || !layer.contains("attributes") || !layer.at("attributes").is_object()) continue;
    layer["attributes"].emplace(rename->attribute, rename->value);
    layer["type"] = rename->now;
  }
}

}  // namespace tenon::host

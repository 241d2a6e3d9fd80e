// Layers from the description of a topology that a model file holds. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "host/layers.h"

namespace tenon {

namespace {

int64_t integer(const nlohmann::json& json) {
  if (!json.is_number_integer()) fail(TN_BAD_DATA, "topology: expected an integer, got ", json.dump());
  return json.get<int64_t>();
}

// A layer by the name that expression_name gives.
Expression find_expression(const std::map<std::string, LayerRef>& layers, const std::string& name) {
  if (name.empty()) return {};
  const auto whole = layers.find(name);
  if (whole != layers.end()) return {whole->second, 0};
  const size_t colon = name.rfind(':');
  const auto entry = colon == std::string::npos ? layers.end() : layers.find(name.substr(0, colon));
  if (entry == layers.end()) fail(TN_BAD_DATA, "topology: layer \"", name, "\" is used before it is described");
  const std::string number = name.substr(colon + 1);
  const bool digits = !number.empty() && number.size() < 6 &&
                      std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; });
  const auto output = digits ? static_cast<uint32_t>(std::stoul(number)) : ~0U;
  if (output >= entry->second->outputs.size()) fail(TN_BAD_DATA, "topology: no output \"", name, "\"");
  return {entry->second, output};
}

}  // namespace

std::vector<Expression> LayerFactory::from_json(const nlohmann::json& json) try {
  if (!json.at("outputs").is_array() || !json.at("layers").is_array())
    fail(TN_BAD_DATA, "topology: \"layers\" and \"outputs\" must be lists");
  if (integer(json.at("version")) != 1) fail(TN_UNSUPPORTED, "topology version ", json.at("version").dump());
  std::map<std::string, LayerRef> layers;
  size_t number = 0;
  for (const nlohmann::json& entry : json.at("layers")) try {
      ++number;
      const auto name = entry.at("name").get<std::string>();
      const auto type = entry.at("type").get<std::string>();
      LayerRef made;
      if (entry.contains("dtype")) {
        DataSource source;
        source.dtype = dtype_from_name(entry.at("dtype").get<std::string>());
        for (const nlohmann::json& extent : entry.at("shape")) source.shape.push_back(integer(extent));
        source.index_limit = integer(entry.at("index_limit"));
        source.scale = entry.at("scale").get<double>();
        source.offset = entry.at("offset").get<double>();
        if (entry.contains("storage")) {
          const auto storage = entry.at("storage").get<std::string>();
          if (storage != "ragged" && storage != "csr") fail(TN_BAD_DATA, "topology: storage \"", storage, "\"");
          source.storage = storage == "csr" ? TN_CSR : TN_RAGGED;
          if (storage == "ragged") {
            const int64_t levels = integer(entry.at("levels"));
            if (levels != 1 && levels != 2) fail(TN_BAD_DATA, "topology: ", levels, " levels; expected 1 or 2");
            source.levels = static_cast<uint32_t>(levels);
            source.sequence = entry.at("sequence").get<std::string>();
          }
        }
        made = data(name, std::move(source));
      } else {
        std::vector<Expression> inputs;
        for (const nlohmann::json& input : entry.at("inputs"))
          inputs.push_back(find_expression(layers, input.get<std::string>()));
        Values attributes;
        for (const auto& [key, value] : entry.at("attributes").items()) attributes[key] = value_from_json(value);
        made = layer(type, name, std::move(inputs), attributes).layer;
      }
      if (!layers.emplace(name, std::move(made)).second) fail(TN_BAD_DATA, "topology: two layers named \"", name, "\"");
    } catch (const nlohmann::json::exception& error) {
      fail(TN_BAD_DATA, "topology: layer number ", number, " of the file: ", error.what());
    }
  std::vector<Expression> outputs;
  for (const nlohmann::json& output : json.at("outputs")) {
    outputs.push_back(find_expression(layers, output.get<std::string>()));
    if (outputs.back().layer == nullptr) fail(TN_BAD_DATA, "topology: an output without a name");
  }
  return outputs;
} catch (const nlohmann::json::exception& error) {
  fail(TN_BAD_DATA, "topology: ", error.what());
}

}  // namespace tenon

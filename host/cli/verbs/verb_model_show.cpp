// tenon model show: describes a model file, or tensors in shards; loads no plugin. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "host/cli/console.h"
#include "host/cli/job/topology.h"
#include "host/cli/options.h"
#include "host/cli/table.h"
#include "host/cli/verbs/verbs.h"
#include "weights/tensors.h"

namespace tenon::cli {

namespace {

using nlohmann::json;

std::string inline_json(const json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

// "size 128, act relu"; without absent ones, and without parameter_name if that is the layer's name.
std::string attributes_of(const json& layer) {
  std::string result;
  if (!layer.contains("attributes")) return result;
  for (const auto& [name, value] : layer.at("attributes").items()) {
    if (value.is_null() || (name == "parameter_name" && value == layer.at("name"))) continue;
    base::append(result, name + " " + inline_json(value));
  }
  return result;
}

// "tenon.fc 1.0.0": the plugin that the type came from; "" for data layers and in files of hosts before 0.2.
std::string plugin_of(const json& layer) {
  if (!layer.contains("plugin")) return "";
  return layer.at("plugin").at("id").get<std::string>() + " " + layer.at("plugin").at("version").get<std::string>();
}

std::string state_version_of(const json& layer) {
  return layer.contains("plugin") ? layer.at("plugin").at("state_version").dump() : "";
}

// "; 3 names: cat, dog, fox": the first ones of a list of names, which a file holds whole or as a digest.
std::string list_of(const json& layer, const char* key) {
  if (!layer.contains(key)) return "";
  const json& names = layer.at(key);
  if (names.is_object()) return "; " + names.at("count").dump() + " " + key;
  constexpr size_t kMost = 5;
  std::string result = "; " + std::to_string(names.size()) + " " + key;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i)
    result += (i == 0 ? ": " : ", ") + names[i].get<std::string>();
  return names.size() > kMost ? result + ", ..." : result;
}

// What the integers of a data layer stand for, and the columns of its vectors.
std::string columns_of(const json& layer) { return list_of(layer, "names") + list_of(layer, "columns"); }

void print_topology(const json& topology) {
  Table table({"layer", "type", "plugin", ">state", "inputs", "attributes"});
  for (const json& layer : topology.at("layers")) {
    const std::string inputs = layer.contains("inputs") ? names_in(layer.at("inputs")) : "";
    table.row({layer.at("name").get<std::string>(), layer.at("type").get<std::string>(), plugin_of(layer),
               state_version_of(layer), inputs,
               layer.contains("dtype") ? to_string(slot_of(layer)) + columns_of(layer) : attributes_of(layer)});
  }
  table.print(std::cout, output_width());
  std::cout << "\noutputs: " << plain(names_in(topology.at("outputs"))) << "\n\n";
}

// Returns what the shards of an index, or of a folder, hold, in the form of a description of a model file; a tensor has
// the name of its shard as "file".
json description_of_shards(const Host& host, const std::string& path) {
  const weights::TensorFile shards = weights::read_tensors(host, path);
  json tensors = json::array();
  for (const weights::StoredTensor& tensor : shards.tensors)
    tensors.push_back({{"name", tensor.name},
                       {"dtype", tensor.type},
                       {"shape", tensor.shape},
                       {"bytes", tensor.bytes},
                       {"file", std::filesystem::path(tensor.file).filename().string()}});
  return {{"verified", false}, {"topology", nullptr}, {"tensors", tensors}, {"metadata", shards.metadata}};
}

json description_of(const Host& host, const std::string& path) {
  std::error_code unknown;
  const bool shards = path.ends_with(".json") || std::filesystem::is_directory(path, unknown);
  return shards ? description_of_shards(host, path) : json::parse(host.describe_model(path));
}

void print_tensors(const json& tensors) {
  std::vector<std::string> headings = {"tensor", "type", "shape", ">bytes"};
  if (!tensors.empty() && tensors[0].contains("file")) headings.emplace_back("file");
  Table table(headings);
  uint64_t total = 0;
  std::set<std::string> files;
  for (const json& tensor : tensors) {
    const auto bytes = tensor.at("bytes").get<uint64_t>();
    total += bytes;
    const std::string file = tensor.value("file", "");
    if (!file.empty()) files.insert(file);
    table.row({tensor.at("name").get<std::string>(), tensor.at("dtype").get<std::string>(), tensor.at("shape").dump(),
               std::to_string(bytes), file});
  }
  table.print(std::cout, output_width());
  std::cout << "\n" << tensors.size() << " tensors, " << total << " bytes (" << shown_bytes(total) << ")";
  if (!files.empty()) std::cout << " in " << files.size() << " files";
  std::cout << "\n";
}

// The files with the rows of tables.
void print_parts(const json& parts) {
  Table table({"part", "blocks of rows", "checksum"});
  for (const json& part : parts) {
    const auto first = part.at("first_block").get<int64_t>(), count = part.at("blocks").get<int64_t>();
    table.row({part.at("file").get<std::string>(), std::to_string(first) + " to " + std::to_string(first + count - 1),
               part.at("checksum").get<std::string>()});
  }
  std::cout << "\nThe rows of its tables lie in " << parts.size() << (parts.size() == 1 ? " file" : " files")
            << " beside it (tenon model join makes one file of all):\n";
  table.print(std::cout, output_width());
}

void print_model(const json& model) {
  const bool verified = model.at("verified").get<bool>();
  std::cout << (verified ? "verified: the checksum is right" : "not verified: the file carries no checksum of Tenon")
            << "\n\n";
  if (model.at("topology").is_object())
    print_topology(model.at("topology"));
  else
    std::cout << "no topology: the file holds tensors only\n\n";
  print_tensors(model.at("tensors"));
  if (model.contains("parts")) print_parts(model.at("parts"));
  for (const auto& [key, value] : model.at("metadata").items())
    std::cout << plain(key + ": " + inline_json(value)) << "\n";
}

}  // namespace

int run_model_show(const Arguments& arguments) {
  bool as_json = false;
  Options options(
      "model show", {"FILE"},
      "Describes a model file: whether its checksum is right, its layers, its tensors. Runs no plugin code. FILE may\n"
      "also be the index of a model of Hugging Face in shards, X.safetensors.index.json, or the folder that has it.");
  options.list.add_options()("json", boost::program_options::bool_switch(&as_json), "print JSON");
  if (!options.parse(arguments)) return kDone;
  const json model = description_of(PluginOptions().host(), options.operand(0));
  if (as_json) {
    std::cout << model.dump(2, ' ', false, json::error_handler_t::replace) << "\n";
    return kDone;
  }
  try {
    print_model(model);
  } catch (const json::exception&) {
    throw Failure(kBadData, options.operand(0) + ": the topology is not in the form that docs/model-file.md describes");
  }
  return kDone;
}

}  // namespace tenon::cli

// SPDX-License-Identifier: Apache-2.0
#include "host/cli/model.h"

#include <nlohmann/json.hpp>
#include <set>

namespace tenon::cli {

namespace {

using nlohmann::json;

// Returns the default of a type's attribute, null if there is none.
json initial_of(const Host& host, const std::string& type, const std::string& attribute) {
  const json described = json::parse(host.describe_type("layer", type));
  for (const json& declared : described.at("attributes"))
    if (declared.at("name") == attribute) return declared.value("initial", json());
  return {};
}

// Finds the first difference of two descriptions of one layer (docs/model-file.md) that its outputs depend on.
class Comparison {
 public:
  Comparison(const Host& host, const json& saved, const json& job) : host_(host) {
    compare("type", saved.at("type"), job.at("type"));
    if (!found_.empty()) return;
    if (saved.contains("scale")) {
      for (const char* key : {"dtype", "shape", "scale", "offset"}) compare(key, saved.at(key), job.at(key));
      if (saved.at("index_limit") != -1 && job.at("index_limit") != -1)
        compare("index_limit", saved.at("index_limit"), job.at("index_limit"));
      return;
    }
    compare("inputs", saved.at("inputs"), job.at("inputs"));
    std::set<std::string> names;
    for (const json* layer : {&saved, &job})
      for (const auto& [name, value] : layer->at("attributes").items()) names.insert(name);
    for (const std::string& name : names)
      if (name != "drop_rate" && name.rfind("param.", 0) != 0)  // these affect training alone
        compare("attribute \"" + name + "\"", attribute(saved, name), attribute(job, name));
  }

  // Describes the difference, "" if there is none.
  [[nodiscard]] const std::string& found() const { return found_; }

 private:
  void compare(const std::string& what, const json& saved, const json& job) {
    const auto told = [](const json& value) { return value.is_null() ? "not given" : value.dump(); };
    if (found_.empty() && saved != job)
      found_ = what + " is " + told(saved) + " there, and " + told(job) + " in the job";
  }
  [[nodiscard]] json attribute(const json& layer, const std::string& name) const {
    if (layer.at("attributes").contains(name)) return layer.at("attributes").at(name);
    return name == "parameter_name" ? layer.at("name") : initial_of(host_, layer.at("type"), name);
  }

  const Host& host_;
  std::string found_;
};

void compare_layers(const Host& host, const std::string& path, const Topology& topology, Console& console) {
  const std::map<std::string, json> job = topology.described();
  const json saved = json::parse(host.describe_model(path));
  for (const json& layer : saved.at("topology").at("layers")) {
    const auto same = job.find(layer.at("name").get<std::string>());
    if (same == job.end()) continue;
    const Comparison comparison(host, layer, same->second);
    if (comparison.found().empty()) continue;
    console.warn(path + " was saved with another layer \"" + same->first + "\": " + comparison.found());
    break;
  }
}

}  // namespace

std::string model_path(const Job& job, const std::string& given) {
  if (given.empty() && !job.save)
    throw Failure(kUsage, job.path + ": the job saves no model; name a file with --model FILE");
  return given.empty() ? *job.save : given;
}

TrainOptions run_of_model(const Host& host, const Job& job, const JobReader& reader, const std::string& path,
                          const std::vector<std::string>& outputs, OpenReader& open, Topology& topology,
                          Console& console) {
  TrainOptions run;
  run.parameters = host.load(path).parameters;
  open = open_reader(host, job, reader, true, run.parameters.names());
  run.outputs = topology.layers(outputs);
  compare_layers(host, path, topology, console);
  run.reader = open.reader;
  run.feeding = open.feeding;
  run.device = job.device;
  return run;
}

}  // namespace tenon::cli

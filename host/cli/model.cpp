// SPDX-License-Identifier: Apache-2.0
#include "host/cli/model.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"

namespace tenon::cli {

namespace {

using nlohmann::json;

// Finds the first difference of two descriptions of one layer that its outputs depend on: a data layer as in a model
// file (docs/model-file.md), any other as tn_layer_describe describes it. Where the job gives no attribute, it has that
// of the saved layer.
class Comparison {
 public:
  Comparison(const json& saved, const json& job) {
    compare("type", saved.at("type"), job.at("type"));
    if (!found_.empty()) return;
    if (saved.contains("scale")) {
      for (const char* key : {"dtype", "shape", "scale", "offset"}) compare(key, saved.at(key), job.at(key));
      compare("layout", saved.value("layout", json()), job.value("layout", json()));
      if (saved.at("index_limit") != -1 && job.at("index_limit") != -1)
        compare("index_limit", saved.at("index_limit"), job.at("index_limit"));
      return;
    }
    compare("inputs", saved.at("inputs"), job.at("inputs"));
    std::set<std::string> names;
    for (const json* layer : {&saved, &job})
      if (layer->contains("attributes"))  // parts of scans in a file have none
        for (const auto& [name, value] : layer->at("attributes").items()) names.insert(name);
    for (const std::string& name : names)
      if (name != "drop_rate" && name != "coefficient" && name.rfind("param.", 0) != 0)  // these affect training alone
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
  [[nodiscard]] static json attribute(const json& layer, const std::string& name) {
    if (layer.at("attributes").contains(name)) return layer.at("attributes").at(name);
    return name == "parameter_name" ? layer.at("name") : json();
  }

  std::string found_;
};

// Describes the first attribute of a layer that the job does not give and whose default is not that of the saved layer;
// "" if there is none.
std::string taken_over(const Host& host, const JobLayer& layer, const json& saved) {
  const json type = json::parse(host.describe_type("layer", layer.type));
  for (const json& declared : type.at("attributes")) {
    const auto name = declared.at("name").get<std::string>();
    const auto given = [&](const Attribute& attribute) { return attribute.name == name; };
    if (std::any_of(layer.attributes.begin(), layer.attributes.end(), given)) continue;
    const json there = saved.at("attributes").value(name, json()), initial = declared.value("initial", json());
    // A former name of the type states an attribute that has no default, and a job leaves one that is required to the
    // reader of its training.
    const bool stated = initial.is_null() && (type.at("type") != layer.type || declared.value("required", false));
    if (there != initial && !stated)
      return "attribute \"" + name + "\" is not given in the job: it is " + there.dump() +
             ", as in the model, and the default is " + (initial.is_null() ? "none" : initial.dump());
  }
  return "";
}

// Warns of the first layer in which model and job differ.
void compare_layers(const Host& host, const std::string& path, const Topology& topology, Console& console) {
  const std::map<std::string, json> job = topology.described();
  const json file = json::parse(host.describe_model(path));
  for (const json& layer : file.at("topology").at("layers")) {
    const auto same = job.find(layer.at("name").get<std::string>());
    if (same == job.end()) continue;
    const Layer* const like = topology.saved_like(same->first);  // null for a data layer and one of another type
    const json saved = like == nullptr ? layer : json::parse(like->describe());
    const std::string difference = Comparison(saved, same->second).found();
    const std::string taken =
        like != nullptr && difference.empty() ? taken_over(host, *topology.job_layer(same->first), saved) : "";
    if (!difference.empty())
      console.warn(path + " was saved with another layer \"" + same->first + "\": " + difference);
    if (!taken.empty()) console.warn(path + ": layer \"" + same->first + "\": " + taken);
    if (!difference.empty() || !taken.empty()) break;
  }
}

}  // namespace

std::string model_path(const Job& job, const std::string& given) {
  if (given.empty() && !job.save)
    throw Failure(kUsage, job.path + ": the job saves no model; name a file with --model FILE");
  return given.empty() ? *job.save : given;
}

std::vector<std::string> data_layers_of(const Topology& topology, const std::vector<std::string>& outputs) {
  std::vector<std::string> result;
  for (const std::string& input : topology.inputs_of(outputs))
    if (!topology.has_layer(input)) result.push_back(input);
  return result;
}

TrainOptions run_of_model(const Host& host, const Job& job, const JobReader& reader, const std::string& path,
                          const std::vector<std::string>& outputs, OpenReader& open, Topology& topology,
                          Console& console) {
  TrainOptions run;
  Model model = host.load(path);
  run.parameters = std::move(model.parameters);
  topology.set_saved(std::move(model.outputs));
  const std::vector<std::string> slots = data_layers_of(topology, outputs);
  try {
    open = open_reader(host, job, reader, true, run.parameters.names(), false, slots);
  } catch (const Failure& failure) {
    if (failure.exit() != kBadConfig) throw;
    throw Failure(kBadConfig,
                  failure.what() + std::string("; the outputs need only these slots: ") + base::listed(slots));
  }
  run.outputs = topology.layers(outputs);
  compare_layers(host, path, topology, console);
  run.reader = open.reader;
  run.feeding = open.feeding;
  set_devices(job, &run);
  return run;
}

}  // namespace tenon::cli

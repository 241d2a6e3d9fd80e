// SPDX-License-Identifier: Apache-2.0
#include "host/cli/job/listing.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "host/cli/console.h"
#include "host/cli/table.h"

namespace tenon::cli {

namespace {

using nlohmann::json;

uint64_t count_of(const json& parameter) {
  uint64_t result = 1;
  for (const json& extent : parameter.at("shape")) result *= extent.get<uint64_t>();
  return result;
}

bool is_buffer(const json& parameter) { return parameter.at("kind") == "buffer"; }

// "weight [16, 8], mean [8] (buffer)"; a parameter that is named after another layer has its full name.
std::string shown_parameters(const json& layer) {
  const std::string own = layer.at("name").get<std::string>() + ".";
  std::string result;
  for (const json& parameter : layer.at("parameters")) {
    const auto name = parameter.at("name").get<std::string>();
    base::append(result, (name.rfind(own, 0) == 0 ? name.substr(own.size()) : name) + " " +
                             base::to_string(parameter.at("shape").get<std::vector<int64_t>>()) +
                             (is_buffer(parameter) ? " (buffer)" : ""));
  }
  return result;
}

// "1 layer", "12 layers"
std::string counted(uint64_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

}  // namespace

json list_layers(const Job& job, const JobReader& reader, const OpenReader& open, const Topology& topology,
                 const Parameters& parameters) {
  const std::map<std::string, json> made = topology.described();
  std::map<std::string, json> declared;
  json totals = {{"layers", job.layers.size()}, {"parameters", 0}, {"values", 0}, {"buffers", 0}, {"buffer_values", 0}};
  for (const json& parameter : json::parse(parameters.describe())) {
    const bool buffer = is_buffer(parameter);
    json& number = totals[buffer ? "buffers" : "parameters"];
    json& values = totals[buffer ? "buffer_values" : "values"];
    number = number.get<uint64_t>() + 1;
    values = values.get<uint64_t>() + count_of(parameter);
    declared.emplace(parameter.at("name").get<std::string>(), parameter);
  }
  json layers = json::array();
  for (const Slot& slot : open.slots) {
    const auto feeding = [&](const JobSlot& each) { return each.slot == slot.name; };
    const auto use = std::find_if(reader.slots.begin(), reader.slots.end(), feeding);
    const std::string name = use == reader.slots.end() ? slot.name : use->layer;
    if (!made.contains(name) || topology.has_layer(name)) continue;  // not read, or another slot feeds it
    layers.push_back({{"name", name},
                      {"type", "data"},
                      {"inputs", json::array()},
                      {"outputs", {{{"name", name}, {"shape", to_string(slot)}, {"dtype", slot.dtype}}}},
                      {"parameters", json::array()},
                      {"computed", true},
                      {"place", use == reader.slots.end() ? reader.place : use->place}});
  }
  for (const JobLayer& layer : job.layers) {
    const auto found = made.find(layer.name);
    json entry = {{"name", layer.name},       {"type", layer.type},          {"inputs", layer.inputs},
                  {"outputs", json::array()}, {"parameters", json::array()}, {"computed", found != made.end()},
                  {"place", layer.place}};
    if (found != made.end()) {
      entry["inputs"] = found->second.at("inputs");
      entry["outputs"] = found->second.at("outputs");
      for (const json& name : found->second.at("parameters"))
        entry["parameters"].push_back(declared.at(name.get<std::string>()));
    }
    layers.push_back(std::move(entry));
  }
  return {{"layers", std::move(layers)}, {"totals", std::move(totals)}};
}

void print_layers(const json& listing) {
  Table table({"layer", "type", "inputs", "output", "parameters", ">values", "from"});
  for (const json& layer : listing.at("layers")) {
    uint64_t values = 0;
    for (const json& parameter : layer.at("parameters"))
      if (!is_buffer(parameter)) values += count_of(parameter);
    const auto shape_of = [](const json& output) { return output.at("shape").get<std::string>(); };
    table.row({layer.at("name").get<std::string>(), layer.at("type").get<std::string>(), names_in(layer.at("inputs")),
               layer.at("computed").get<bool>() ? base::joined(layer.at("outputs"), shape_of) : "not computed",
               shown_parameters(layer), values == 0 ? "" : std::to_string(values),
               layer.at("place").get<std::string>()});
  }
  table.print(std::cout, output_width());
  const json& totals = listing.at("totals");
  const auto total = [&](const char* key) { return totals.at(key).get<uint64_t>(); };
  std::cout << "\n"
            << counted(total("layers"), "layer") << ", " << counted(total("parameters"), "parameter") << " of "
            << counted(total("values"), "value");
  if (total("buffers") > 0)
    std::cout << ", " << counted(total("buffers"), "buffer") << " of " << counted(total("buffer_values"), "value");
  std::cout << "\n";
}

}  // namespace tenon::cli

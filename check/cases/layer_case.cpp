// SPDX-License-Identifier: Apache-2.0
#include "check/cases/layer_case.h"

#include <algorithm>

#include "base/text.h"
#include "check/cases/fault.h"

namespace tenon::check {

namespace {

std::string input_text(const InputSpec& input) {
  std::string result = input.sparse ? "sparse " : "";
  if (!input.sequence.empty()) result = input.levels == 2 ? "sequences of sequences of " : "sequences of ";
  if (input.below > 0) result += "int ";
  result += base::to_string(input.shape);
  if (input.below > 0) result += " below " + std::to_string(input.below);
  return result;
}

InputSpec read_input(const json& entry) {
  InputSpec input;
  for (const auto& [key, what] : entry.items()) {
    if (key == "shape")
      input.shape = what.get<std::vector<int64_t>>();
    else if (key == "below")
      input.below = what.get<int64_t>();
    else if (key == "range")
      input.low = what.at(0).get<double>(), input.high = what.at(1).get<double>();
    else if (key == "sequence")
      input.sequence = what.get<std::string>();
    else if (key == "levels")
      input.levels = what.get<uint32_t>();
    else if (key == "gradient")
      input.gradient = what.get<bool>();
    else if (key == "sparse")
      input.sparse = what.get<bool>();
    else
      throw Fault("a case has an input with the unknown key \"" + key + "\"");
  }
  return input;
}

ChainLayer read_chain_layer(const json& entry, bool first) {
  ChainLayer layer;
  for (const auto& [key, what] : entry.items()) {
    if (key == "type")
      layer.type = what.get<std::string>();
    else if (key == "attributes")
      layer.attributes = what;
    else if (key == "inputs")
      layer.inputs = what.get<std::vector<int64_t>>();
    else
      throw Fault("a case has a layer of a chain with the unknown key \"" + key + "\"");
  }
  const bool reads = std::count(layer.inputs.begin(), layer.inputs.end(), ChainLayer::kBefore) > 0;
  if (layer.type.empty() || layer.inputs.empty() || reads == first)
    throw Fault(
        "a layer of the chain of a case needs a type and inputs: numbers of inputs of the case, and, of each "
        "layer but the first, -1 for the output of the layer before");
  return layer;
}

}  // namespace

std::string LayerCase::text() const {
  std::string result = name.empty() ? text_of(attributes) : name;
  for (const ChainLayer& layer : chain)
    base::append(result, layer.type + (layer.attributes.empty() ? "" : "(" + text_of(layer.attributes) + ")"));
  const std::string list = base::joined(inputs, input_text);
  if (!list.empty()) result += (result.empty() ? "inputs " : "; inputs ") + list;
  return result.empty() ? "no inputs" : result;
}

LayerCase read_layer_case(const json& entry) {
  LayerCase result;
  for (const auto& [key, value] : entry.items()) try {
      if (key == "attributes") {
        result.attributes = value;
      } else if (key == "couples_samples") {
        result.couples_samples = value.get<bool>();
      } else if (key == "differentiable") {
        result.differentiable = value.get<bool>();
      } else if (key == "zeros") {
        result.zeros = value.get<bool>();
      } else if (key == "huge") {
        result.huge = value.get<bool>();
      } else if (key == "inputs") {
        for (const json& each : value) result.inputs.push_back(read_input(each));
      } else if (key == "chain") {
        for (const json& each : value) result.chain.push_back(read_chain_layer(each, result.chain.empty()));
      } else if (key != "type") {
        throw Fault("a case has the unknown key \"" + key + "\"");
      }
    } catch (const json::exception&) {
      throw Fault("a case has a wrong value of \"" + key + "\": " + value.dump());
    }
  for (const ChainLayer& layer : result.chain)
    for (const int64_t input : layer.inputs)
      if (input < ChainLayer::kBefore || input >= static_cast<int64_t>(result.inputs.size()))
        throw Fault("a layer of the chain of a case reads input " + std::to_string(input) + "; the case has " +
                    std::to_string(result.inputs.size()));
  return result;
}

}  // namespace tenon::check

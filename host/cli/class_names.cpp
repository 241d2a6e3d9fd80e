// SPDX-License-Identifier: Apache-2.0
#include "host/cli/class_names.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tenon/tenon_topology.hpp>

namespace tenon::cli {

namespace {

// A data layer with names that a cost or metric reads, and the names of the layers that it scores.
struct Label {
  const std::vector<std::string>* texts = nullptr;
  int64_t classes = 0;
  std::set<std::string> scores;
};

std::vector<Layer> inputs_of(const Layer& layer) {
  std::vector<Layer> result;
  for (uint32_t i = 0, count = inspect(layer).inputs; i < count; ++i)
    if (std::optional<Layer> read = input(layer, i)) result.push_back(std::move(*read));
  return result;
}

// Adds the layer, and those before it up to one that has parameters: probabilities and the scores that they are of.
void add_scores(const Layer& layer, std::set<std::string>& scores) {
  std::vector<Layer> waiting = {layer};
  while (!waiting.empty()) {
    const Layer next = std::move(waiting.back());
    waiting.pop_back();
    const LayerInfo info = inspect(next);
    if (info.type == "data" || !scores.insert(info.name).second || info.parameters != 0) continue;
    for (Layer& before : inputs_of(next)) waiting.push_back(std::move(before));
  }
}

std::vector<Label> labels_of(const Layers& saved, const std::vector<Names>& names) {
  std::vector<Label> labels;
  for (const Layer& layer : layers(saved)) {
    if (inspect(layer).role == "layer") continue;
    const std::vector<Layer> inputs = inputs_of(layer);
    for (const Layer& label : inputs) {
      const LayerInfo info = inspect(label);
      const auto known =
          std::find_if(names.begin(), names.end(), [&](const Names& it) { return it.slot == info.name; });
      if (info.type != "data" || known == names.end() || known->texts.empty()) continue;
      const int64_t limit = inspect_data(label).index_limit;
      labels.push_back({&known->texts, limit > 0 ? limit : known->count, {}});
      for (const Layer& each : inputs) add_scores(each, labels.back().scores);
    }
  }
  return labels;
}

// The names of a layer and of all layers that it depends on.
std::set<std::string> all_before(const Layer& layer) {
  std::set<std::string> result;
  for (const Layer& each : layers({layer})) result.insert(inspect(each).name);
  return result;
}

// The size of the last dimension, -1 if it is not fixed.
int64_t width_of(const OutputInfo& output) { return output.shape.empty() ? -1 : output.shape.back().extent; }

OutputInfo read_output(const Layer& layer) { return inspect_output(layer, inspect(layer).output); }

ClassNames names_of(const Layer& output, const std::vector<Label>& labels) {
  const OutputInfo shape = read_output(output);
  const bool numbers = shape.dtype != TN_COMPUTE && tn_dtype_code(shape.dtype) <= tn_dtype_code(TN_U8);
  const std::vector<Layer> inputs = inputs_of(output);
  if (numbers && inputs.empty()) return {};
  const int64_t classes = width_of(numbers ? read_output(inputs.front()) : shape);
  const std::set<std::string> before = all_before(output);
  const std::vector<std::string>* found = nullptr;
  for (const Label& label : labels) {
    const auto scores = [&](const std::string& name) { return before.contains(name); };
    if (label.classes != classes || std::none_of(label.scores.begin(), label.scores.end(), scores)) continue;
    if (found != nullptr && *found != *label.texts) return {};  // of two labels
    found = label.texts;
  }
  return {found, numbers};
}

}  // namespace

std::vector<ClassNames> class_names(const Layers& outputs, const Layers& saved, const std::vector<Names>& names) {
  const std::vector<Label> labels = saved.empty() ? std::vector<Label>() : labels_of(saved, names);
  std::vector<ClassNames> result;
  for (const Layer& output : outputs) result.push_back(labels.empty() ? ClassNames() : names_of(output, labels));
  return result;
}

}  // namespace tenon::cli

// SPDX-License-Identifier: Apache-2.0
#include "host/cli/infer/classes.h"

#include <algorithm>
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
      const auto names_of_label =
          std::find_if(names.begin(), names.end(), [&](const Names& list) { return list.slot == info.name; });
      if (info.type != "data" || names_of_label == names.end() || names_of_label->texts.empty()) continue;
      const int64_t limit = inspect_data(label).index_limit;
      labels.push_back({&names_of_label->texts, limit > 0 ? limit : names_of_label->count, {}});
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

bool is_integer(const OutputInfo& output) {
  return output.dtype != TN_COMPUTE && tn_dtype_code(output.dtype) <= tn_dtype_code(TN_U8);
}

ClassNames names_of(const Layer& output, const std::vector<Label>& labels) {
  const OutputInfo shape = read_output(output);
  const bool numbers = is_integer(shape);
  const std::vector<Layer> inputs = inputs_of(output);
  if (numbers && inputs.empty()) return {};
  const int64_t classes = width_of(numbers ? read_output(inputs.front()) : shape);
  const std::set<std::string> before = all_before(output);
  const std::vector<std::string>* texts = nullptr;
  for (const Label& label : labels) {
    const auto scores = [&](const std::string& name) { return before.contains(name); };
    if (label.classes != classes || std::none_of(label.scores.begin(), label.scores.end(), scores)) continue;
    if (texts != nullptr && *texts != *label.texts) return {};  // of two labels
    texts = label.texts;
  }
  return {texts, numbers};
}

// Whether both are sequences of as many levels, or neither is.
bool are_alike(const OutputInfo& a, const OutputInfo& b) { return a.storage == b.storage && a.levels == b.levels; }

// Returns the pair of a cost or metric, if it has one: floats with a number for each class, and whole numbers for each
// of their rows.
std::optional<LabelledScores> pair_of(const Layer& measure, const std::vector<Names>& names) {
  const std::vector<Layer> inputs = inputs_of(measure);
  for (const Layer& label : inputs) {
    const LayerInfo info = inspect(label);
    const OutputInfo numbers = read_output(label);
    if (info.type != "data" || !is_integer(numbers)) continue;
    const auto scores = std::find_if(inputs.begin(), inputs.end(), [&](const Layer& each) {
      const OutputInfo output = read_output(each);
      const bool for_each_row = output.shape.size() == numbers.shape.size() + 1 && are_alike(output, numbers);
      return inspect(each).type != "data" && !is_integer(output) && for_each_row && width_of(output) > 1;
    });
    if (scores == inputs.end()) continue;
    LabelledScores result{*scores, label, width_of(read_output(*scores)), {}};
    for (const Names& list : names)
      if (list.slot == info.name && !list.texts.empty()) result.names.texts = &list.texts;
    return result;
  }
  return std::nullopt;
}

// Returns a pair with the layer that decodes its scores, if the model has one.
std::optional<LabelledScores> decoded(LabelledScores pair, const Layers& saved) {
  for (const Layer& layer : layers(saved)) {
    const std::vector<Layer> inputs = inputs_of(layer);
    const bool reads_scores = !inputs.empty() && inspect(inputs.front()).name == inspect(pair.scores).name;
    if (inspect(layer).role != "layer" || !reads_scores || !is_integer(read_output(layer))) continue;
    pair.scores = layer;
    pair.names.numbers = true;
    return pair;
  }
  return std::nullopt;
}

}  // namespace

std::vector<ClassNames> class_names(const Layers& outputs, const Layers& saved, const std::vector<Names>& names) {
  const std::vector<Label> labels = saved.empty() ? std::vector<Label>() : labels_of(saved, names);
  std::vector<ClassNames> result;
  for (const Layer& output : outputs) result.push_back(labels.empty() ? ClassNames() : names_of(output, labels));
  return result;
}

std::vector<LabelledScores> labelled_scores(const Layers& outputs, const Layers& saved,
                                            const std::vector<Names>& names) {
  std::vector<LabelledScores> result;
  for (const Layer& measure : outputs) {
    const LayerInfo info = inspect(measure);
    if (info.role == "layer") continue;
    std::optional<LabelledScores> pair = pair_of(measure, names);
    if (pair && info.parameters != 0) pair = decoded(*pair, saved);
    const auto same = [&](const LabelledScores& other) {
      return inspect(other.label).name == inspect(pair->label).name;
    };
    if (pair && std::none_of(result.begin(), result.end(), same)) result.push_back(std::move(*pair));
  }
  return result;
}

}  // namespace tenon::cli

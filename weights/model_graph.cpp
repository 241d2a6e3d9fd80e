// SPDX-License-Identifier: Apache-2.0
#include "weights/model_graph.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace tenon::weights {

namespace {

bool is_among(const std::string& type, const std::set<std::string_view>& types) { return types.contains(type); }

bool reads_images(const std::string& type) {
  static const std::set<std::string_view> types = {
      "conv",           "conv_transpose", "img_conv_group",       "local_response_norm", "pool",
      "residual_block", "resize",         "simple_img_conv_pool", "spatial_dropout"};
  return is_among(type, types);
}

// Whether the output of a type has its elements where the first input has them.
bool keeps_places(const std::string& type) {
  static const std::set<std::string_view> types = {
      "abs",        "add",   "batch_norm",  "celu",        "clip",         "div",         "dropout",
      "elu",        "exp",   "gelu",        "hard_shrink", "hard_sigmoid", "hard_swish",  "hard_tanh",
      "leaky_relu", "log",   "log_sigmoid", "maximum",     "minimum",      "mish",        "mul",
      "power",      "prelu", "relu",        "relu6",       "scale_shift",  "scaled_tanh", "selu",
      "sigmoid",    "silu",  "soft_shrink", "softplus",    "softsign",     "sqrt",        "square",
      "sub",        "tanh",  "tanh_shrink", "threshold"};
  return is_among(type, types);
}

// Returns the type of the layer that has parameters of a prefix, within a block or not.
std::string type_below(const std::string& type, const std::string& prefix) {
  if (type == "img_conv_group" || type == "residual_block")
    return prefix.substr(prefix.rfind('.') + 1).rfind("conv_", 0) == 0 ? "conv" : "batch_norm";
  if (type == "simple_img_conv_pool") return "conv";
  return type == "softmax" || type == "log_softmax" || type == "multi_head_attention" ? "fc" : type;
}

Sizes fixed_sizes(const OutputInfo& output) {
  Sizes sizes;
  for (size_t i = 1; i < output.shape.size(); ++i)
    if (output.shape[i].symbol == TN_DIMENSION_FIXED) sizes.push_back(output.shape[i].extent);
  return sizes;
}

bool is_whole(tn_dtype dtype) {
  return dtype == TN_I8 || dtype == TN_I16 || dtype == TN_I32 || dtype == TN_I64 || dtype == TN_U8 || dtype == TN_U16 ||
         dtype == TN_U32;
}

int64_t product(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

// Returns for each element of [space..., channels] its number in [channels, space...].
Places last_of_first(const Sizes& sizes) {
  const int64_t channels = sizes.back(), places = product(sizes) / std::max<int64_t>(channels, 1);
  Places result;
  for (int64_t place = 0; place < places; ++place)
    for (int64_t channel = 0; channel < channels; ++channel) result.push_back(channel * places + place);
  return result;
}

}  // namespace

ModelGraph::ModelGraph(const Layers& outputs) {
  std::map<std::string, size_t> numbers;
  std::map<std::string, size_t> part_of;
  for (const Layer& layer : outputs.empty() ? Layers() : layers(outputs)) {
    const LayerInfo info = inspect(layer);
    const size_t number = nodes_.size();
    Node node = {info.name, info.type, {}, {}, 0};
    numbers.emplace(info.name, number);
    readers_.emplace_back();
    parameters_.emplace_back();
    for (uint32_t i = 0; i < info.inputs; ++i) {
      const std::optional<Layer> source = input(layer, i);
      if (!source) continue;
      const LayerInfo read = inspect(*source);
      const OutputInfo output = inspect_output(*source, read.output);
      node.inputs.push_back({numbers.at(read.name), fixed_sizes(output), is_whole(output.dtype)});
      readers_[node.inputs.back().layer].push_back(number);
    }
    if (info.outputs > 0) {
      const OutputInfo output = inspect_output(layer, 0);
      node.sizes = fixed_sizes(output);
      node.rank = output.shape.size();
    }
    nodes_.push_back(std::move(node));
    for (uint32_t i = 0; i < info.parameters; ++i) {
      const ParameterInfo parameter = tenon::parameter(layer, i);
      const size_t dot = parameter.name.rfind('.');
      const std::string prefix = dot == std::string::npos ? "" : parameter.name.substr(0, dot);
      const auto [at, added] = part_of.emplace(prefix, parts_.size());
      if (added) parts_.push_back({prefix, type_below(info.type, prefix), number, {}});
      parts_[at->second].parameters.emplace(parameter.name.substr(dot == std::string::npos ? 0 : dot + 1), parameter);
      parameters_[number].push_back(parameter.name);
    }
  }
}

Places ModelGraph::columns_in(const Value& value) const {
  const Node& node = nodes_[value.layer];
  if (value.sizes.size() > 1)
    return value.sizes.size() > 2 || is_of_images(value.layer) ? last_of_first(value.sizes) : Places();
  if (node.inputs.empty()) return {};
  if (node.type == "concat" &&
      std::all_of(node.inputs.begin(), node.inputs.end(), [](const Value& each) { return each.sizes.size() == 1; }))
    return concatenated(node.inputs);
  if (node.type == "reshape" || (keeps_places(node.type) && node.inputs[0].sizes == value.sizes))
    return columns_in(node.inputs[0]);
  return {};
}

Places ModelGraph::concatenated(const std::vector<Value>& inputs) const {
  Places result;
  bool moved = false;
  for (const Value& each : inputs) {
    const auto start = static_cast<int64_t>(result.size());
    Places own = columns_in(each);
    moved = moved || !own.empty();
    if (own.empty()) {
      own.resize(static_cast<size_t>(product(each.sizes)));
      std::iota(own.begin(), own.end(), 0);
    }
    for (const int64_t place : own) result.push_back(start + place);
  }
  return moved ? result : Places();
}

Places ModelGraph::columns_out(size_t layer) const {
  if (nodes_[layer].sizes.size() != 1) return {};
  for (const size_t reader : readers_[layer]) {
    const Node& node = nodes_[reader];
    if (node.type == "reshape" && node.sizes.size() > 1) return is_image(reader) ? last_of_first(node.sizes) : Places();
    if (!keeps_places(node.type) || node.sizes != nodes_[layer].sizes) continue;
    if (Places places = columns_out(reader); !places.empty()) return places;
  }
  return {};
}

bool ModelGraph::is_image(size_t layer) const {
  return std::any_of(readers_[layer].begin(), readers_[layer].end(), [&](size_t reader) {
    return reads_images(nodes_[reader].type) || (keeps_places(nodes_[reader].type) && is_image(reader));
  });
}

// [samples, length, channels] is an image of one dimension after layers of images, and else rows of features.
bool ModelGraph::is_of_images(size_t layer) const {
  while (!reads_images(nodes_[layer].type)) {
    if (!keeps_places(nodes_[layer].type) || nodes_[layer].inputs.empty()) return false;
    layer = nodes_[layer].inputs[0].layer;
  }
  return true;
}

std::vector<std::string> ModelGraph::data_of(const std::string& parameter) const {
  std::vector<std::string> result;
  for (size_t layer = 0; layer < nodes_.size(); ++layer) {
    if (std::find(parameters_[layer].begin(), parameters_[layer].end(), parameter) == parameters_[layer].end())
      continue;
    for (const Value& each : nodes_[layer].inputs) {
      size_t at = each.layer;
      if (!each.of_integers && nodes_[at].type != "data") continue;
      while (!nodes_[at].inputs.empty()) at = nodes_[at].inputs[0].layer;
      const std::string& name = nodes_[at].name;
      if (std::find(result.begin(), result.end(), name) == result.end()) result.push_back(name);
    }
  }
  return result;
}

}  // namespace tenon::weights

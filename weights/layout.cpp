// SPDX-License-Identifier: Apache-2.0
#include "weights/layout.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/nearest.h"

namespace tenon::weights {

namespace {

struct Request {
  const ModelGraph& graph;
  const Part& part;
  const Sizes& target;  // of the parameter
};
using Convert = void (*)(const Request& request, Move& move);

int64_t product(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

// Sets the order of the axes, and the shape that follows from it.
void set_axes(Move& move, std::vector<size_t> axes) {
  move.axes = std::move(axes);
  move.shape.clear();
  for (const size_t axis : move.axes) move.shape.push_back(move.sizes[axis]);
}

bool has_rank(Move& move, size_t rank) {
  if (move.sizes.size() == rank) return true;
  move.mismatch = "has " + std::to_string(move.sizes.size()) + " dimensions; " + std::to_string(rank) + " are needed";
  return false;
}

void as_is(const Request& /*request*/, Move& /*move*/) {}

// One number for each feature: of flattened images in the order of their channels.
void features(const Request& request, Move& move) {
  const ModelGraph::Node& node = request.graph.node(request.part.layer);
  if (node.rank != 2 || move.shape != request.target || move.shape.size() != 1) return;
  Places columns = request.graph.columns_in(request.graph.output(request.part.layer));
  if (columns.empty()) columns = request.graph.columns_out(request.part.layer);
  if (columns.size() == static_cast<size_t>(move.shape[0])) move.rows = std::move(columns);
}

// PyTorch: [out, in / groups, kernel...]; transposed [in, out / groups, kernel...].
void channels_last(const Request& request, Move& move) {
  if (!has_rank(move, request.target.size()) || move.sizes.size() < 2) return;
  std::vector<size_t> axes(move.sizes.size());
  std::iota(axes.begin(), axes.end(), 0);
  std::rotate(axes.begin() + 1, axes.begin() + 2, axes.end());
  set_axes(move, axes);
}

// PyTorch: [out, in], where flattened images have their channels first.
void linear(const Request& request, Move& move) {
  if (!has_rank(move, 2)) return;
  set_axes(move, {1, 0});
  const ModelGraph::Node& node = request.graph.node(request.part.layer);
  if (move.shape != request.target || node.inputs.empty()) return;
  move.rows = request.graph.columns_in(node.inputs[0]);
  move.columns = request.graph.columns_out(request.part.layer);
  // Of a layer over the last axis the rows are the features of a place, not a flattened image.
  if (move.rows.size() != static_cast<size_t>(move.shape[0])) move.rows.clear();
  if (move.columns.size() != static_cast<size_t>(move.shape[1])) move.columns.clear();
}

void linear_bias(const Request& request, Move& move) {
  if (move.shape != request.target || move.shape.size() != 1) return;
  move.rows = request.graph.columns_out(request.part.layer);
  if (move.rows.size() != static_cast<size_t>(move.shape[0])) move.rows.clear();
}

// Moves the last axis to the front.
void last_first(Move& move) {
  std::vector<size_t> axes(move.sizes.size());
  std::iota(axes.begin(), axes.end(), 0);
  std::rotate(axes.begin(), axes.end() - 1, axes.end());
  set_axes(move, axes);
}

// Keras: [kernel..., in / groups, out], and of depthwise convolutions [kernel..., in, multiplier].
void kernel(const Request& request, Move& move) {
  if (!has_rank(move, request.target.size()) || move.sizes.size() < 2) return;
  const int64_t filters = request.target.front(), inner = request.target.back();
  int64_t &in = move.sizes[move.sizes.size() - 2], &out = move.sizes.back();
  if ((in != inner || out != filters) && inner == 1 && in * out == filters) {
    in = 1;
    out = filters;
  }
  last_first(move);
}

// Keras: [kernel..., out, in].
void kernel_transposed(const Request& request, Move& move) {
  if (has_rank(move, request.target.size()) && !move.sizes.empty()) last_first(move);
}

// Keras: [1, 1, channels].
void slope(const Request& request, Move& move) {
  if (product(move.sizes) != product(request.target)) return;
  move.sizes = request.target;
  std::vector<size_t> axes(move.sizes.size());
  std::iota(axes.begin(), axes.end(), 0);
  set_axes(move, axes);
}

// What the tensors of a module are called, with our names for them.
struct Entry {
  const char* theirs;
  const char* ours;
  Convert convert;
};
using Table = std::map<std::string, std::vector<Entry>>;

const Table& pytorch() {
  // gamma and beta: of BERT's first checkpoints.
  static const std::vector<Entry> scaled = {{"weight", "scale", features},
                                            {"bias", "shift", features},
                                            {"gamma", "scale", features},
                                            {"beta", "shift", features}};
  static const std::vector<Entry> weighted = {{"weight", "weight", channels_last}, {"bias", "bias", as_is}};
  static const Table table = {{"batch_norm",
                               {{"weight", "scale", features},
                                {"bias", "shift", features},
                                {"running_mean", "moving_mean", features},
                                {"running_var", "moving_variance", features}}},
                              {"conv", weighted},
                              {"conv_transpose", weighted},
                              {"embedding", {{"weight", "weight", as_is}}},
                              {"fc", {{"weight", "weight", linear}, {"bias", "bias", linear_bias}}},
                              {"group_norm", scaled},
                              {"instance_norm", scaled},
                              {"layer_norm", scaled},
                              {"prelu", {{"weight", "slope", features}}}};
  // weight_ih and weight_hh of recurrent layers, in the order of gates of Tenon, and one bias: as tenon.weights makes
  // them of the module's.
  static const Table all = [] {
    Table result = table;
    for (const char* type : {"gru", "lstm", "rnn"})
      result[type] = {{"weight_ih", "weight", linear},
                      {"weight_hh", "recurrent_weight", linear},
                      {"bias", "bias", as_is},
                      {"candidate_bias", "candidate_bias", as_is}};
    result["position_embedding"] = result["embedding"];
    return result;
  }();
  return all;
}

const Table& keras() {
  static const std::vector<Entry> scaled = {{"gamma", "scale", as_is}, {"beta", "shift", as_is}};
  static const Table table = {
      {"batch_norm",
       {{"gamma", "scale", as_is},
        {"beta", "shift", as_is},
        {"moving_mean", "moving_mean", as_is},
        {"moving_variance", "moving_variance", as_is}}},
      {"conv", {{"kernel", "weight", kernel}, {"depthwise_kernel", "weight", kernel}, {"bias", "bias", as_is}}},
      {"conv_transpose", {{"kernel", "weight", kernel_transposed}, {"bias", "bias", as_is}}},
      {"embedding", {{"embeddings", "weight", as_is}}},
      {"fc", {{"kernel", "weight", as_is}, {"bias", "bias", as_is}}},
      {"group_norm", scaled},
      {"layer_norm", scaled},
      {"prelu", {{"alpha", "slope", slope}}}};
  return table;
}

const Table& table_of(bool of_keras) { return of_keras ? keras() : pytorch(); }

bool is_keras(const std::string& framework) {
  if (framework != "pytorch" && framework != "keras")
    throw Error(TN_INVALID,
                "layout: unknown framework \"" + framework + "\"" + base::suggestion(framework, Layout::frameworks()),
                {}, "layout");
  return framework == "keras";
}

}  // namespace

Layout::Layout(const std::string& framework, const Layers& outputs) : keras_(is_keras(framework)), graph_(outputs) {}

bool Layout::knows(const Part& part) const { return table_of(keras_).contains(part.type); }

std::vector<std::string> Layout::known_types() const {
  std::vector<std::string> result;
  for (const auto& [type, entries] : table_of(keras_)) result.push_back(type);
  return result;
}

std::optional<Move> Layout::move(const Part& part, const std::string& last, const Sizes& shape) const {
  const auto entries = table_of(keras_).find(part.type);
  if (entries == table_of(keras_).end()) return std::nullopt;
  for (const Entry& entry : entries->second) {
    const auto ours = part.parameters.find(entry.ours);
    if (last != entry.theirs || ours == part.parameters.end()) continue;
    Move move;
    move.to = ours->second.name;
    move.sizes = move.shape = shape;
    move.axes.resize(shape.size());
    std::iota(move.axes.begin(), move.axes.end(), 0);
    entry.convert({graph_, part, ours->second.shape}, move);
    return move;
  }
  return std::nullopt;
}

std::string Layout::dotted(std::string name) const {
  if (!keras_) return name;
  if (name.ends_with(":0")) name.resize(name.size() - 2);
  std::replace(name.begin(), name.end(), '/', '.');
  return name;
}

std::vector<float> moved(const Move& move, std::vector<float> values) {
  const size_t rank = move.axes.size();
  if (values.empty() ||
      (std::is_sorted(move.axes.begin(), move.axes.end()) && move.rows.empty() && move.columns.empty()))
    return values;
  Sizes strides(rank, 1);  // of the tensor, by its own axes
  for (size_t i = rank - 1; i > 0; --i) strides[i - 1] = strides[i] * move.sizes[i];
  // Where each index of each axis of the result lies in the tensor.
  std::vector<Places> places(rank);
  for (size_t axis = 0; axis < rank; ++axis) {
    places[axis].resize(static_cast<size_t>(move.sizes[move.axes[axis]]));
    std::iota(places[axis].begin(), places[axis].end(), 0);
  }
  if (!move.columns.empty()) places.back() = move.columns;
  if (!move.rows.empty()) places.front() = move.rows;
  for (size_t axis = 0; axis < rank; ++axis)
    for (int64_t& place : places[axis]) place *= strides[move.axes[axis]];
  std::vector<float> result;
  result.reserve(values.size());
  std::vector<size_t> index(rank, 0);
  while (result.size() < values.size()) {
    int64_t base = 0;
    for (size_t axis = 0; axis + 1 < rank; ++axis) base += places[axis][index[axis]];
    for (const int64_t place : places[rank - 1]) result.push_back(values[static_cast<size_t>(base + place)]);
    for (size_t axis = rank - 1; axis > 0 && ++index[axis - 1] == places[axis - 1].size(); --axis) index[axis - 1] = 0;
  }
  return result;
}

}  // namespace tenon::weights

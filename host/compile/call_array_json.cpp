// The call array as JSON, for plans. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "host/compile/call_array.h"
#include "host/compile/memory_plan.h"

namespace tenon::host {

namespace {

nlohmann::json trait_names(uint32_t traits) {
  nlohmann::json names = nlohmann::json::array();
  if ((traits & TN_TRAIT_OWN_THREADS) != 0) names.push_back("own_threads");
  if ((traits & TN_TRAIT_HOST_CALLBACK) != 0) names.push_back("host_callback");
  if ((traits & TN_TRAIT_CAPTURABLE) != 0) names.push_back("capturable");
  if ((traits & TN_TRAIT_NONDETERMINISTIC) != 0) names.push_back("nondeterministic");
  if ((traits & TN_TRAIT_HOST_SIZES) != 0) names.push_back("host_sizes");
  if ((traits & TN_TRAIT_BATCH_VARIANT) != 0) names.push_back("batch_variant");
  if ((traits & TN_TRAIT_PORTABLE) != 0) names.push_back("portable");
  if ((traits & TN_TRAIT_BLOCKING) != 0) names.push_back("blocking");
  return names;
}

nlohmann::json sizes_of(const tn_window& window) {
  const auto list = [&](const int64_t(&sizes)[TN_MAX_SPACE]) {
    return std::vector<int64_t>(sizes, sizes + window.rank);
  };
  return {{"images", list(window.images)},     {"kernel", list(window.kernel)}, {"stride", list(window.stride)},
          {"dilation", list(window.dilation)}, {"before", list(window.before)}, {"after", list(window.after)}};
}

// The window of a convolution, with the numbers of its channels, or of pooling; null of other nodes.
nlohmann::json window_of(const Graph& graph, const Node& node) {
  if (const auto* const pool = node.as<Pool>(); pool != nullptr) return sizes_of(pool->window);
  const auto* const conv = node.as<Conv>();
  if (conv == nullptr) return nullptr;
  const Shape& weights = graph.spec(conv->op == TN_CONV_WEIGHTS ? node.outputs[0] : node.inputs[1]).shape;
  nlohmann::json window = sizes_of(conv->window);
  window["channels"] = weights.back().offset * conv->groups;
  window["filters"] = weights[0].offset;
  window["groups"] = conv->groups;
  return window;
}

}  // namespace

nlohmann::json to_json(const std::vector<PassedOver>& kernels) {
  nlohmann::json list = nlohmann::json::array();
  for (const PassedOver& each : kernels) {
    list.push_back({{"kernel", each.kernel}, {"plugin", each.plugin}, {"reason", each.reason}});
    if (each.score) list.back()["score"] = *each.score;
  }
  return list;
}

bool CallArray::is_batch_invariant() const {
  return std::none_of(calls_.begin(), calls_.end(), [&](const Call& call) {
    return !graph_.nodes[call.node].backward && (call.prepared->traits & TN_TRAIT_BATCH_VARIANT) != 0;
  });
}

bool CallArray::is_portable() const {
  return std::all_of(calls_.begin(), calls_.end(),
                     [](const Call& call) { return call.of_host || (call.prepared->traits & TN_TRAIT_PORTABLE) != 0; });
}

nlohmann::json CallArray::describe_saved() const {
  std::set<ValueId> saved;
  for (const Node& node : graph_.nodes) {
    if (!node.backward) continue;
    for (const ValueId input : node.inputs) {
      if (input == kNoValue) continue;
      const ValueId root = graph_.root(input);
      const int32_t producer = graph_.values[at(root)].producer;
      if (producer >= 0 && !graph_.nodes[static_cast<size_t>(producer)].backward) saved.insert(root);
    }
  }
  nlohmann::json list = nlohmann::json::array();
  for (const ValueId value : saved) {
    const Node& maker = graph_.nodes[static_cast<size_t>(graph_.values[at(value)].producer)];
    const std::string& name = graph_.values[at(value)].name;
    list.push_back(
        {{"layer", !name.empty() || maker.layer < 0 ? name : graph_.layers[static_cast<size_t>(maker.layer)]},
         {"value", to_string(graph_.spec(value))},
         {"bytes", bytes_of(graph_.spec(value), bounds_)}});
  }
  return list;
}

nlohmann::json CallArray::describe() const {
  nlohmann::json list = nlohmann::json::array();
  const auto total = [&](const std::vector<ValueId>& values) {
    uint64_t bytes = 0;
    for (const ValueId value : values) {
      if (value == kNoValue) continue;
      Spec spec = graph_.spec(value);
      if (spec.storage == TN_ROW_SPARSE) spec.shape[0] = tn_dim_constant(shapes_[at(value)][0]);  // its capacity
      bytes += bytes_of(spec, bounds_);
    }
    return bytes;
  };
  for (const Call& call : calls_) {
    const Node& node = graph_.nodes[call.node];
    nlohmann::json layers = nlohmann::json::array();
    for (const int32_t layer : node.served())
      layers.push_back(layer < 0 ? std::string() : graph_.layers[static_cast<size_t>(layer)]);
    nlohmann::json outputs = nlohmann::json::array();
    for (const ValueId output : node.outputs)
      if (output != kNoValue) outputs.push_back(to_string(graph_.spec(output)));
    list.push_back({{"phase", node.backward ? "backward" : "forward"},
                    {"layers", layers},
                    {"call", primitive_name(node.operation)},
                    {"kernel", call.kernel},
                    {"plugin", call.prepared.by().plugin},
                    {"operations", node.pointwise() == nullptr ? 1 : node.pointwise()->program->instructions.size()},
                    {"outputs", outputs},
                    {"reads", total(node.inputs)},
                    {"writes", total(node.outputs)},
                    {"workspace", call.prepared->workspace_bytes},
                    {"traits", trait_names(call.prepared->traits)}});
    if (checks_.time)
      list.back()["measured"] = {{"runs", call.measured.runs},
                                 {"seconds", call.measured.seconds},
                                 {"operations", call.measured.work.operations},
                                 {"bytes", call.measured.work.bytes}};
    if (nlohmann::json window = window_of(graph_, node); !window.is_null()) list.back()["window"] = std::move(window);
    if (!call.prepared.passed_over.empty()) list.back()["passed_over"] = to_json(call.prepared.passed_over);
    if (node.once) list.back()["once"] = true;
    if (node.loop < 0) continue;
    list.back()["loop"] = node.loop;
    const int32_t around = graph_.loops[static_cast<size_t>(node.loop)].around;
    if (around >= 0) list.back()["around"] = around;
  }
  return list;
}

}  // namespace tenon::host

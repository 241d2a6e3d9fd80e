// SPDX-License-Identifier: Apache-2.0
#include "check/older_host.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace tenon::check {

namespace {

// Of the one component that the process checks: plan and lower get nothing that leads to the given table.
const tn_layer_type* given_layer = nullptr;
uint16_t required_minor = TN_ABI_MINOR;
std::string first_fault;

// The functions that came with 0.3: of tn_planner, then of tn_builder.
constexpr const char* kNewer[] = {"plan calls index_exempt", "lower calls argsort",    "lower calls prefix_sum",
                                  "lower calls conv",        "lower calls pool",       "lower calls resize",
                                  "lower calls scan_begin",  "lower calls scan_input", "lower calls scan_memory",
                                  "lower calls scan_next",   "lower calls scan_end",   "lower calls scan_last",
                                  "lower calls scan_output"};

// Stands for a function that the host does not have, with a result that says that it failed.
template <size_t kNumber, int32_t kResult, typename... Parameters>
int32_t absent(Parameters... /*arguments*/) {
  if (first_fault.empty())
    first_fault = std::string(kNewer[kNumber]) + ", which came with version 0.3 of the plugin interface; the plugin " +
                  "says that it runs on hosts of 0." + std::to_string(required_minor);
  return kResult;
}
template <size_t kNumber, int32_t kResult, typename... Parameters>
void remove(int32_t (*&function)(Parameters...)) {
  function = absent<kNumber, kResult, Parameters...>;
}

tn_planner older(const tn_planner& planner) {
  tn_planner result = planner;
  if (required_minor >= 3) return result;
  result.size = offsetof(tn_planner, index_exempt);
  remove<0, TN_PLUGIN_FAULT>(result.index_exempt);
  return result;
}

tn_builder older(const tn_builder& builder) {
  tn_builder result = builder;
  if (required_minor >= 3) return result;
  result.size = offsetof(tn_builder, argsort);
  remove<1, -1>(result.argsort);
  remove<2, -1>(result.prefix_sum);
  remove<3, -1>(result.conv);
  remove<4, TN_PLUGIN_FAULT>(result.pool);
  remove<5, -1>(result.resize);
  remove<6, TN_PLUGIN_FAULT>(result.scan_begin);
  remove<7, -1>(result.scan_input);
  remove<8, -1>(result.scan_memory);
  remove<9, TN_PLUGIN_FAULT>(result.scan_next);
  remove<10, TN_PLUGIN_FAULT>(result.scan_end);
  remove<11, -1>(result.scan_last);
  remove<12, -1>(result.scan_output);
  return result;
}

tn_status plan(const tn_planner* planner) {
  const tn_planner shorter = older(*planner);
  return given_layer->plan(&shorter);
}
tn_status lower(const tn_attributes* attributes, const tn_builder* builder) {
  const tn_builder shorter = older(*builder);
  return given_layer->lower(attributes, &shorter);
}

}  // namespace

const tn_plugin* plugin_in_older_host(const tn_plugin& plugin, const std::string& type) {
  static tn_plugin made = {};
  static tn_layer_type layer = {};
  static std::vector<const tn_layer_type*> layers;
  std::memcpy(&made, &plugin, std::min<size_t>(plugin.size, sizeof made));
  made.size = sizeof made;
  required_minor = plugin.abi.required;
  for (uint32_t i = 0; i < plugin.layers_count; ++i) {
    layers.push_back(plugin.layers[i]);
    if (type != plugin.layers[i]->description->type) continue;
    given_layer = plugin.layers[i];
    layer = *given_layer;
    if (layer.plan != nullptr) layer.plan = plan;
    if (layer.lower != nullptr) layer.lower = lower;
    layers.back() = &layer;
  }
  made.layers = layers.data();
  return &made;
}

std::string older_host_fault() { return std::exchange(first_fault, ""); }

tn_execution older_execution(const tn_execution& execution, uint16_t required, uint32_t traits) {
  tn_execution result = execution;
  if (required < 3 && (traits & TN_TRAIT_HOST_SIZES) == 0) {
    result.size = offsetof(tn_execution, host_symbols);
    result.host_symbols = nullptr;
  }
  return result;
}

}  // namespace tenon::check

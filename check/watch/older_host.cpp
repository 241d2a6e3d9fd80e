// SPDX-License-Identifier: Apache-2.0
#include "check/watch/older_host.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace tenon::check {

namespace {

// Of the one component that the process checks: its functions get nothing that leads to the given table.
const tn_layer_type* given_layer = nullptr;
const tn_updater_type* given_updater = nullptr;
uint16_t required_by_type = TN_ABI_MINOR;
std::string older_fault;

// The functions that came with 0.3: of tn_planner, then of tn_builder.
constexpr const char* kNewer[] = {"plan calls index_exempt", "lower calls argsort",    "lower calls prefix_sum",
                                  "lower calls conv",        "lower calls pool",       "lower calls resize",
                                  "lower calls scan_begin",  "lower calls scan_input", "lower calls scan_memory",
                                  "lower calls scan_next",   "lower calls scan_end",   "lower calls scan_last",
                                  "lower calls scan_output"};

std::string newer(const std::string& what, int minor, uint16_t required) {
  return what + ", which came with version 0." + std::to_string(minor) +
         " of the plugin interface; the plugin says that it runs on hosts of 0." + std::to_string(required);
}
void blame(const std::string& what, int minor) {
  if (older_fault.empty()) older_fault = newer(what, minor, required_by_type);
}

// Stands for a function that the host does not have, with a result that says that it failed.
template <size_t kNumber, int32_t kResult, typename... Parameters>
int32_t absent(Parameters... /*arguments*/) {
  blame(kNewer[kNumber], 3);
  return kResult;
}
template <size_t kNumber, int32_t kResult, typename... Parameters>
void remove(int32_t (*&function)(Parameters...)) {
  function = absent<kNumber, kResult, Parameters...>;
}

tn_planner older(const tn_planner& planner) {
  tn_planner result = planner;
  if (required_by_type >= 3) return result;
  result.size = offsetof(tn_planner, index_exempt);
  remove<0, TN_PLUGIN_FAULT>(result.index_exempt);
  return result;
}

tn_builder older(const tn_builder& builder) {
  tn_builder result = builder;
  if (required_by_type >= 3) return result;
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

// A recorder that hands all on and looks at the numbers that came with 0.3.
tn_status record(const tn_update_recorder* recorder) {
  tn_update_recorder watching = *recorder;
  watching.self = const_cast<tn_update_recorder*>(recorder);
  watching.state = [](void* self, const tn_state* state) {
    if (required_by_type < 3 && state->extent == TN_PER_COLUMN) blame("record declares a state per column", 3);
    const auto* const original = static_cast<const tn_update_recorder*>(self);
    return original->state(original->self, state);
  };
  watching.program = [](void* self, const tn_update* update) {
    if (required_by_type < 3 && update->grain == TN_GRAIN_MATRIX) blame("record gives the grain of a matrix", 3);
    const auto* const original = static_cast<const tn_update_recorder*>(self);
    return original->program(original->self, update);
  };
  return given_updater->record(&watching);
}

}  // namespace

const tn_plugin* plugin_in_older_host(const tn_plugin& plugin, const std::string& type) {
  static tn_plugin copy = {};
  static tn_layer_type layer = {};
  static std::vector<const tn_layer_type*> layers;
  std::memcpy(&copy, &plugin, std::min<size_t>(plugin.size, sizeof copy));
  copy.size = sizeof copy;
  required_by_type = plugin.abi.required;
  for (uint32_t i = 0; i < plugin.layers_count; ++i) {
    layers.push_back(plugin.layers[i]);
    if (type != plugin.layers[i]->description->type) continue;
    given_layer = plugin.layers[i];
    layer = *given_layer;
    if (layer.plan != nullptr) layer.plan = plan;
    if (layer.lower != nullptr) layer.lower = lower;
    layers.back() = &layer;
  }
  copy.layers = layers.data();
  static tn_updater_type updater = {};
  static std::vector<const tn_updater_type*> updaters;
  for (uint32_t i = 0; i < plugin.updaters_count; ++i) {
    updaters.push_back(plugin.updaters[i]);
    if (type != plugin.updaters[i]->description->type) continue;
    given_updater = plugin.updaters[i];
    updater = *given_updater;
    updater.record = record;
    updaters.back() = &updater;
  }
  copy.updaters = updaters.data();
  return &copy;
}

std::string older_host_fault() { return std::exchange(older_fault, ""); }

tn_execution older_execution(const tn_execution& execution, uint16_t required, uint32_t traits) {
  tn_execution result = execution;
  if (required < 3 && (traits & TN_TRAIT_HOST_SIZES) == 0) {
    result.size = offsetof(tn_execution, host_symbols);
    result.host_symbols = nullptr;
  }
  return result;
}

std::string newer_traits(uint32_t traits, uint16_t required) {
  const struct {
    uint32_t trait;
    const char* name;
    int minor;
  } late_traits[] = {{TN_TRAIT_HOST_SIZES, "TN_TRAIT_HOST_SIZES", 3},
                     {TN_TRAIT_BATCH_VARIANT, "TN_TRAIT_BATCH_VARIANT", 3},
                     {TN_TRAIT_ANY_ALIGNMENT, "TN_TRAIT_ANY_ALIGNMENT", 4}};
  for (const auto& [trait, name, minor] : late_traits)
    if ((traits & trait) != 0 && required < minor) return newer(std::string("prepare sets ") + name, minor, required);
  return "";
}

}  // namespace tenon::check

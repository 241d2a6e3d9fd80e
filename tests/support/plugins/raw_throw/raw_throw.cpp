// C++ behind the C tables without the wrappers of the SDK: the function that the attribute `where` names throws, which
// the interface forbids and the host survives. SPDX-License-Identifier: Apache-2.0
#include <tenon/plugin.h>

#include <cstring>
#include <stdexcept>
#include <string>

namespace {

void pass(const tn_attributes* attributes, const char* here) {
  if (std::strcmp(tn_string(attributes, "where", ""), here) == 0)
    throw std::runtime_error(std::string("thrown by ") + here);
}

tn_attribute where_attribute() {
  tn_attribute result = {};
  result.size = sizeof result;
  result.kind = TN_ATTR_STRING;
  result.name = "where";
  result.doc = "the function that throws";
  result.initial.kind = TN_ATTR_STRING;
  result.initial.count = 1;
  result.initial.as.s = "";
  return result;
}

tn_status run_kernel(void* binding, const tn_execution*, const tn_call* call) {
  if (binding != nullptr) throw std::runtime_error("thrown by run");
  std::memcpy(tn_data(call->outputs[0]), tn_data(call->inputs[0]),
              sizeof(float) * static_cast<size_t>(tn_elements(call->inputs[0])));
  return TN_OK;
}

struct Tables {
  tn_attribute where = where_attribute();
  const tn_attribute* attributes[1] = {&where};
  tn_port in = {sizeof(tn_port), 0, "in", "any"}, out = {sizeof(tn_port), 0, "out", "as in"};
  const tn_port *inputs[1] = {&in}, *outputs[1] = {&out};
  tn_layer_description description = {};
  tn_layer_type layer = {};
  const tn_layer_type* layers[1] = {&layer};
  tn_dtype dtypes[1] = {TN_F32};
  tn_kernel kernel = {};
  const tn_kernel* kernels[1] = {&kernel};
  tn_plugin plugin = {};

  Tables() {
    description.size = sizeof description;
    description.type = "test_raw_throw";
    description.doc = "A layer whose functions throw.";
    description.state_version = 1;
    description.inputs_count = description.outputs_count = description.attributes_count = 1;
    description.inputs = inputs;
    description.outputs = outputs;
    description.attributes = attributes;
    layer.size = sizeof layer;
    layer.description = &description;
    layer.plan = [](const tn_planner* planner) {
      pass(planner->attributes, "plan");
      return planner->output(planner->self, 0, planner->inputs[0]);
    };
    kernel.size = sizeof kernel;
    kernel.score = 1;
    kernel.type = description.type;
    kernel.device = "cpu";
    kernel.name = "raw_throw";
    kernel.dtypes_count = 1;
    kernel.dtypes = dtypes;
    kernel.supports = [](const tn_kernel_site* site, int32_t*) -> tn_status {
      pass(site->attributes, "supports");
      return TN_OK;
    };
    kernel.query = [](const tn_kernel_site* site, tn_kernel_needs*) -> tn_status {
      pass(site->attributes, "query");
      return TN_OK;
    };
    kernel.prepare = [](const tn_kernel_site* site, int32_t, tn_prepared* prepared) -> tn_status {
      pass(site->attributes, "prepare");
      const bool throws = std::strcmp(tn_string(site->attributes, "where", ""), "run") == 0;
      prepared->binding = throws ? prepared : nullptr;
      prepared->run = &run_kernel;
      return TN_OK;
    };
    plugin.size = sizeof plugin;
    plugin.abi = {TN_ABI_MAJOR, TN_ABI_MINOR, TN_ABI_MINOR, 0};
    plugin.id = "tenon.test.raw_throw";
    plugin.version = "1.0.0";
    plugin.doc = "Functions that throw";
    plugin.license = "Apache-2.0";
    plugin.isa = "";
    plugin.layers_count = plugin.kernels_count = 1;
    plugin.layers = layers;
    plugin.kernels = kernels;
  }
};

}  // namespace

const tn_plugin* tenon_plugin(void) {
  static const Tables tables;
  return &tables.plugin;
}

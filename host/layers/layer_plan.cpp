// SPDX-License-Identifier: Apache-2.0
#include "host/layers/layer_plan.h"

#include <algorithm>

#include "core/error.h"
#include "host/plugins/callback.h"

namespace tenon::host {

void LayerPlan::run(const AttributesView& attributes) {
  layer_.index_limits.assign(layer_.inputs.size(), -1);
  outputs_.resize(type_.description.outputs.size());
  const Loan<tn_planner> planner(type_.tags, this, "planner", sink_.who());
  planner->inputs_count = inputs_.count();
  planner->errors = sink_.get();
  planner->attributes = attributes.get();
  planner->inputs = inputs_.get();
  set_callbacks(*planner.get());
  sink_.check(call_plugin(type_, sink_.who(), {Tag::kSetup, "plan"}, type_.table.plan, planner.get()));
  take_outputs();
  check_cost();
}

void LayerPlan::set_callbacks(tn_planner& planner) {
  planner.output = [](void* self, uint32_t number, const tn_spec* spec) {
    return lent<LayerPlan>(self, [&](LayerPlan& plan) { plan.set_output(number, spec); });
  };
  planner.parameter = [](void* self, const tn_parameter* parameter) {
    int32_t index = -1;
    lent<LayerPlan>(self, [&](LayerPlan& plan) { index = plan.declare(parameter, plan.layer_.parameters); });
    return index;
  };
  planner.buffer = [](void* self, const tn_parameter* parameter) {
    int32_t index = -1;
    lent<LayerPlan>(self, [&](LayerPlan& plan) { index = plan.declare(parameter, plan.layer_.buffers); });
    return index;
  };
  planner.index_limit = [](void* self, uint32_t input, int64_t limit) {
    return lent<LayerPlan>(self, [&](LayerPlan& plan) { plan.limit_index(input, limit); });
  };
  planner.state = [](void* self, uint32_t count) {
    return lent<LayerPlan>(self, [&](LayerPlan& plan) { plan.set_state_count(count); });
  };
  planner.concatenated = [](void* self, const tn_spec* a, const tn_spec* b, tn_dim* rows) {
    return lent<LayerPlan>(self, [&](LayerPlan& plan) {
      if (a == nullptr || b == nullptr || rows == nullptr) fail(TN_PLUGIN_FAULT, "plan concatenates a null pointer");
      *rows = plan.join(Spec::from(*a), Spec::from(*b));
    });
  };
}

void LayerPlan::set_output(uint32_t number, const tn_spec* spec) {
  if (number >= outputs_.size() || spec == nullptr) fail(TN_PLUGIN_FAULT, "plan declares output ", number);
  outputs_[number] = inputs_.in_sequences(Spec::from(*spec), layer_.concatenated);
}

// Appends a parameter or buffer to `list` and returns its index.
int32_t LayerPlan::declare(const tn_parameter* given, std::vector<LayerParameter>& list) const {
  if (given == nullptr || given->suffix == nullptr || given->spec == nullptr)
    fail(TN_PLUGIN_FAULT, "plan declares a parameter without suffix or shape");
  const std::vector<std::string>& known = type_.description.parameters;
  if (std::find(known.begin(), known.end(), given->suffix) == known.end())
    fail(TN_PLUGIN_FAULT, "plan declares parameter \"", given->suffix, "\", which its description lacks");
  LayerParameter parameter;
  parameter.name = layer_.parameter_name + "." + given->suffix;
  parameter.spec = Spec::from(*given->spec);
  parameter.initializer = given->initializer;
  parameter.flags = given->flags;
  for (const Dim& dim : parameter.spec.shape)
    if (dim.symbol != TN_SYMBOL_NONE)
      fail(TN_PLUGIN_FAULT, "parameter \"", parameter.name, "\" has a varying shape ",
           to_string(parameter.spec, symbols_));
  list.push_back(std::move(parameter));
  return static_cast<int32_t>(list.size() - 1);
}

// Refuses a data layer whose declared values exceed the limit. The values themselves are checked at each step.
void LayerPlan::limit_index(uint32_t input, int64_t limit) {
  if (input >= layer_.index_limits.size()) fail(TN_PLUGIN_FAULT, "plan limits input ", input);
  if (layer_.inputs[input].layer == nullptr) fail(TN_PLUGIN_FAULT, "plan limits input ", input, ", which is absent");
  layer_.index_limits[input] = limit;
  const Layer& source = *resolved(layer_.inputs[input]).layer;
  if (source.data && source.data->storage != TN_CSR && source.data->index_limit > limit)
    fail(TN_INVALID, SubjectName{inputs_.port(input).name}, "input \"", inputs_.port(input).name, "\": data layer \"",
         source.name, "\" has values from 0 to ", source.data->index_limit - 1, "; expected 0 to ", limit - 1);
}

void LayerPlan::set_state_count(uint32_t count) {
  if (layer_.role != TN_ROLE_METRIC) fail(TN_PLUGIN_FAULT, "only a metric has a state");
  layer_.state_count = count;
}

Dim LayerPlan::join(const Spec& a, const Spec& b) {
  if (a.storage != TN_RAGGED || b.storage != TN_RAGGED || a.outer.empty() || b.outer.empty() ||
      !same(a.outer[0], b.outer[0]))
    fail(TN_INVALID, "expected sequences of the same samples, got ", to_string(a, symbols_), " and ",
         to_string(b, symbols_));
  ConcatenatedDim concatenated;
  concatenated.first = a.shape[0].symbol;
  concatenated.second = b.shape[0].symbol;
  concatenated.rows = symbols_.concatenated(concatenated.first, concatenated.second);
  layer_.concatenated.push_back(concatenated);
  return tn_dim_symbol(concatenated.rows);
}

void LayerPlan::take_outputs() {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (!outputs_[i])
      fail(TN_PLUGIN_FAULT, ComponentName{sink_.who()}, "plan did not declare output \"",
           type_.description.outputs[i].name, "\"");
    layer_.outputs.push_back(*outputs_[i]);
  }
}

void LayerPlan::check_cost() const {
  if (layer_.role != TN_ROLE_COST) return;
  const bool one_per_sample = !layer_.outputs.empty() && layer_.outputs[0].shape.size() == 1 &&
                              layer_.outputs[0].shape[0].symbol != TN_SYMBOL_NONE;
  if (!one_per_sample)
    fail(TN_INVALID, ComponentName{sink_.who()}, "a cost has one value per sample or row; its inputs give ",
         layer_.outputs.empty() ? "nothing" : to_string(layer_.outputs[0].shape, symbols_));
}

}  // namespace tenon::host

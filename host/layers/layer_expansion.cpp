// SPDX-License-Identifier: Apache-2.0
#include "host/layers/layer_expansion.h"

#include "core/error.h"
#include "host/plugins/callback.h"

namespace tenon::host {

LayerExpansion::LayerExpansion(const LayerType& type, const LayerInputs& inputs, Layer& layer, ErrorSink& sink,
                               MakeInner make_inner)
    : type_(type),
      inputs_(inputs),
      layer_(layer),
      sink_(sink),
      make_inner_(std::move(make_inner)),
      values_(layer.inputs) {}

void LayerExpansion::run(const AttributesView& attributes) {
  if (type_.table.expand == nullptr) return;
  const Loan<tn_expander> expander(type_.tags, this, "expander", sink_.who());
  fill(*expander.get(), attributes);
  const tn_status status = call_plugin(type_, sink_.who(), {Tag::kSetup, "expand"}, type_.table.expand, expander.get());
  if (status == TN_UNSUPPORTED) {
    layer_.expansion = {};
    return;
  }
  sink_.check(status);
  layer_.expansion.resize(layer_.outputs.size());
  if (layer_.outputs.empty()) fail(TN_PLUGIN_FAULT, ComponentName{sink_.who()}, "expand: the layer has no outputs");
  for (size_t i = 0; i < layer_.outputs.size(); ++i) check_output(i);
  layer_.parameters.clear();
  layer_.buffers.clear();
}

void LayerExpansion::fill(tn_expander& expander, const AttributesView& attributes) {
  expander.inputs_count = inputs_.count();
  expander.errors = sink_.get();
  expander.attributes = attributes.get();
  expander.inputs = inputs_.get();
  expander.user = type_.table.user;
  expander.input = LentFunction<LayerExpansion, &LayerExpansion::input>();
  expander.layer = LentFunction<LayerExpansion, &LayerExpansion::add_inner>();
  expander.output_of = LentFunction<LayerExpansion, &LayerExpansion::add_output>();
  expander.output = LentFunction<LayerExpansion, &LayerExpansion::set_output>();
}

tn_ref LayerExpansion::add(LayerOutput value) {
  values_.push_back(std::move(value));
  return static_cast<tn_ref>(values_.size() - 1);
}

const LayerOutput& LayerExpansion::value(tn_ref ref) const {
  if (ref < 0 || static_cast<size_t>(ref) >= values_.size()) fail(TN_PLUGIN_FAULT, "expand uses value ", ref);
  return values_[static_cast<size_t>(ref)];
}

LayerOutput LayerExpansion::inner(const tn_expansion_layer* given) const {
  if (given != nullptr && !TN_HAS(given, tn_expansion_layer, attribute_values))
    fail(TN_PLUGIN_FAULT, "a tn_expansion_layer states a size of ", given->size, " bytes");
  if (given == nullptr || given->type == nullptr) fail(TN_PLUGIN_FAULT, "expand adds a layer without a type");
  if ((given->inputs_count > 0 && given->inputs == nullptr) ||
      (given->attributes_count > 0 && (given->attribute_names == nullptr || given->attribute_values == nullptr)))
    fail(TN_PLUGIN_FAULT, "expand adds a layer with a null list");
  for (uint32_t i = 0; i < given->attributes_count; ++i)
    if (given->attribute_names[i] == nullptr) fail(TN_PLUGIN_FAULT, "expand adds a layer with a null attribute name");
  std::vector<LayerOutput> inputs;
  for (uint32_t i = 0; i < given->inputs_count; ++i) inputs.push_back(value(given->inputs[i]));
  Values attributes;
  for (uint32_t i = 0; i < given->attributes_count; ++i)
    attributes[given->attribute_names[i]] = value_from(given->attribute_values[i]);
  return make_inner_(given->type, std::move(inputs), std::move(attributes),
                     given->suffix == nullptr ? layer_.parameter_name : layer_.parameter_name + "." + given->suffix);
}

LayerOutput LayerExpansion::output_of(tn_ref first, uint32_t number) const {
  const LayerOutput& of = value(first);
  if (of.layer == nullptr || number >= of.layer->outputs.size())
    fail(TN_PLUGIN_FAULT, "expand uses output ", number, " of value ", first);
  return {of.layer, number};
}

void LayerExpansion::set_output(uint32_t port, tn_ref ref) {
  if (port >= layer_.outputs.size()) fail(TN_PLUGIN_FAULT, "expand sets output ", port);
  layer_.expansion.resize(layer_.outputs.size());
  layer_.expansion[port] = value(ref);
}

void LayerExpansion::check_output(size_t number) const {
  const LayerOutput& given = layer_.expansion[number];
  const std::string port = value_name(type_.description.outputs, number);
  if (given.layer == nullptr) fail(TN_PLUGIN_FAULT, ComponentName{sink_.who()}, "expand set no output \"", port, "\"");
  const Spec& made = given.layer->outputs.at(given.output);
  if (!same(made.shape, layer_.outputs[number].shape))
    fail(TN_PLUGIN_FAULT, ComponentName{sink_.who()}, "plan and expand disagree on output \"", port,
         "\": ", to_string(layer_.outputs[number], inputs_.names()), " and ", to_string(made, inputs_.names()));
  if (number == 0 && layer_.role == TN_ROLE_COST) check_cost(given);
}

// Training minimises the leaves that are costs, so a cost that expands to another leaf would not be trained.
void LayerExpansion::check_cost(const LayerOutput& output) const {
  const LayerOutput leaf = resolved(output);
  if (leaf.layer->role != TN_ROLE_COST)
    fail(TN_PLUGIN_FAULT, ComponentName{sink_.who()}, "a cost must expand to a cost; expand ends in ",
         layer_label(*leaf.layer), ", which is not one");
  if (leaf.output != 0)
    fail(TN_PLUGIN_FAULT, ComponentName{sink_.who()}, "a cost must expand to a cost; expand ends in output ",
         leaf.output, " of ", layer_label(*leaf.layer), ", and a cost is its output 0");
}

}  // namespace tenon::host

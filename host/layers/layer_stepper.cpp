// SPDX-License-Identifier: Apache-2.0
#include "host/layers/layer_stepper.h"

#include <utility>

#include "core/error.h"
#include "host/plugins/callback.h"
#include "host/plugins/offered_table.h"

namespace tenon::host {

std::optional<tn_step> step_table(const LayerType& type, const std::string& who) {
  const OfferedTable table = extension_table(type, who, TN_STEP);
  const auto* const step = table.as<tn_step>();
  return step == nullptr ? std::nullopt : std::optional(*step);
}

LayerStepper::LayerStepper(const LayerType& type, const LayerInputs& inputs, Layer& layer, LayerExpansion& expansion,
                           const StepSources& sources, MakeData make_data)
    : type_(type),
      inputs_(inputs),
      layer_(layer),
      expansion_(expansion),
      sources_(sources),
      make_data_(std::move(make_data)) {}

StepParts LayerStepper::run(const tn_step& table, const AttributesView& attributes, size_t count) {
  layer_.outputs.resize(count);
  layer_.expansion.resize(count);
  const Loan<tn_expander> expander(type_.tags, &expansion_, "expander", sink().who());
  expansion_.fill(*expander.get(), attributes);
  const Loan<tn_stepper> stepper(type_.tags, this, "stepper", sink().who());
  stepper->expander = expander.get();
  set_callbacks(*stepper.get());
  sink().check(call_plugin(type_, sink().who(), {Tag::kSetup, "step"}, table.step,
                           static_cast<const tn_stepper*>(stepper.get())));
  for (size_t i = 0; i < count; ++i)
    if (const LayerOutput& set = layer_.expansion[i]; set.layer != nullptr)
      layer_.outputs[i] = set.layer->outputs.at(set.output);
  check_memories();
  return std::move(parts_);
}

void LayerStepper::set_callbacks(tn_stepper& stepper) {
  stepper.position = LentFunction<LayerStepper, &LayerStepper::position>();
  stepper.past = LentFunction<LayerStepper, &LayerStepper::past>();
  stepper.memory = LentFunction<LayerStepper, &LayerStepper::memory>();
  stepper.history = LentFunction<LayerStepper, &LayerStepper::history>();
  stepper.next = LentFunction<LayerStepper, &LayerStepper::set_next>();
}

// Returns the source of a data layer that has the values of `spec`.
DataSource LayerStepper::source_of(const Spec& spec, const char* what) const {
  bool fits = spec.storage == TN_DENSE && is_float(spec.dtype) && !spec.shape.empty() &&
              same(spec.shape[0], tn_dim_symbol(TN_SYMBOL_SAMPLES));
  DataSource source;
  for (size_t i = 1; fits && i < spec.shape.size(); ++i) {
    fits = spec.shape[i].symbol == TN_SYMBOL_NONE;
    source.shape.push_back(spec.shape[i].offset);
  }
  if (!fits)
    fail(TN_PLUGIN_FAULT, "step has a ", what, " of ", to_string(spec, inputs_.names()),
         "; expected float [samples, ...], constant but for the samples");
  return source;
}

tn_ref LayerStepper::memory(const tn_step_memory* given) {
  if (given == nullptr || !TN_HAS(given, tn_step_memory, spec) || given->spec == nullptr)
    fail(TN_PLUGIN_FAULT, "step has a memory without a spec");
  if (given->input < -1 || given->input >= static_cast<int32_t>(type_.description.inputs.size()))
    fail(TN_PLUGIN_FAULT, "step has a memory that begins with input ", given->input);
  StepParts::Memory memory;
  memory.data = make_data_(layer_.name + "/memory_" + std::to_string(parts_.memories.size()),
                           source_of(Spec::from(*given->spec), "memory"));
  if (given->input >= 0) memory.input = static_cast<size_t>(given->input);
  parts_.memories.push_back(memory);
  return expansion_.add({memory.data, 0});
}

void LayerStepper::set_next(tn_ref memory, tn_ref value) {
  const LayerRef& data = expansion_.value(memory).layer;
  const LayerOutput& next = expansion_.value(value);
  for (StepParts::Memory& each : parts_.memories) {
    if (each.data != data) continue;
    if (each.next.layer != nullptr) fail(TN_PLUGIN_FAULT, "step leaves two values in a memory");
    if (next.layer == nullptr || !same(next.layer->outputs.at(next.output).shape, data->outputs[0].shape))
      fail(TN_PLUGIN_FAULT, "step leaves a value of another shape in a memory");
    each.next = next;
    return;
  }
  fail(TN_PLUGIN_FAULT, "step leaves a value in what is no memory");
}

tn_ref LayerStepper::history(tn_ref value) {
  StepParts::History history;
  history.value = expansion_.value(value);
  if (history.value.layer == nullptr) fail(TN_PLUGIN_FAULT, "step keeps an input that is absent");
  DataSource source = source_of(history.value.layer->outputs.at(history.value.output), "history");
  source.storage = TN_RAGGED;
  source.levels = 1;
  source.sequence = sources_.past->name + "/rows";  // all histories have as many rows
  history.data = make_data_(layer_.name + "/history_" + std::to_string(parts_.histories.size()), std::move(source));
  parts_.histories.push_back(history);
  return expansion_.add({history.data, 0});
}

void LayerStepper::check_memories() const {
  for (const StepParts::Memory& each : parts_.memories)
    if (each.next.layer == nullptr)
      fail(TN_PLUGIN_FAULT, ComponentName{layer_label(layer_)}, "step leaves nothing in a memory");
}

}  // namespace tenon::host

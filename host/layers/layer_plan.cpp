// SPDX-License-Identifier: Apache-2.0
#include "host/layers/layer_plan.h"

#include <algorithm>

#include "core/error.h"
#include "host/layers/host_attributes.h"
#include "host/plugins/callback.h"

namespace tenon::host {

void LayerPlan::run(const AttributesView& attributes) {
  layer_.index_limits.assign(layer_.inputs.size(), {});
  outputs_.resize(type_.description.outputs.size());
  const Loan<tn_planner> planner(type_.tags, this, "planner", sink_.who());
  planner->inputs_count = inputs_.count();
  planner->errors = sink_.get();
  planner->attributes = attributes.get();
  planner->inputs = inputs_.get();
  planner->user = type_.table.user;
  set_callbacks(*planner.get());
  sink_.check(call_plugin(type_, sink_.who(), {Tag::kSetup, "plan"}, type_.table.plan, planner.get()));
  check_declared_limits();
  take_outputs();
  check_cost();
}

void LayerPlan::set_callbacks(tn_planner& planner) {
  planner.output = LentFunction<LayerPlan, &LayerPlan::set_output>();
  planner.parameter = LentFunction<LayerPlan, &LayerPlan::declare_parameter>();
  planner.buffer = LentFunction<LayerPlan, &LayerPlan::declare_buffer>();
  planner.index_limit = LentFunction<LayerPlan, &LayerPlan::limit_index>();
  planner.index_exempt = LentFunction<LayerPlan, &LayerPlan::exempt_index>();
  planner.state = LentFunction<LayerPlan, &LayerPlan::set_state_count>();
  planner.rows = LentFunction<LayerPlan, &LayerPlan::derive_rows>();
  planner.carried = LentFunction<LayerPlan, &LayerPlan::carry>();
}

void LayerPlan::set_output(uint32_t number, const tn_spec* spec) {
  constexpr size_t kMostOutputs = 65536;
  const std::vector<Port>& ports = type_.description.outputs;
  if ((number >= ports.size() && !is_variadic(ports)) || spec == nullptr)
    fail(TN_PLUGIN_FAULT, "plan declares output ", number);
  if (number >= kMostOutputs)
    fail(TN_PLUGIN_FAULT, "plan declares output ", number, "; a layer has at most ", kMostOutputs, " outputs");
  if (number >= outputs_.size()) outputs_.resize(size_t{number} + 1);
  outputs_[number] = inputs_.in_sequences(Spec::from(*spec), layer_.derived_rows);
}

// Appends a parameter or buffer to `list` and returns its index.
int32_t LayerPlan::declare(const tn_parameter* given, std::vector<LayerParameter>& list) const {
  if (given != nullptr && !TN_HAS(given, tn_parameter, merge))
    fail(TN_PLUGIN_FAULT, "a tn_parameter states a size of ", given->size, " bytes");
  if (given == nullptr || given->suffix == nullptr || given->spec == nullptr)
    fail(TN_PLUGIN_FAULT, "plan declares a parameter without suffix or shape");
  const std::vector<std::string>& known = type_.description.parameters;
  if (std::find(known.begin(), known.end(), given->suffix) == known.end())
    fail(TN_PLUGIN_FAULT, "plan declares parameter \"", given->suffix, "\", which its description lacks");
  LayerParameter parameter;
  parameter.suffix = given->suffix;
  parameter.path = layer_.path + parameter.suffix;
  parameter.name = full_name(layer_.given, layer_.parameter_name, parameter.suffix);
  parameter.spec = Spec::from(*given->spec);
  parameter.initializer = given->initializer;
  parameter.flags = given->flags;
  parameter.sparse_declared = (given->flags & TN_PARAMETER_SPARSE_GRADIENT) != 0;
  parameter.merge = given->merge;
  check_unused(given->flags & ~uint32_t{TN_PARAMETER_SPARSE_GRADIENT},
               "flags of a tn_parameter, beside the known ones,");
  check_unused(given->reserved, "reserved member of a tn_parameter");
  check_unused(given->initializer.reserved, "reserved member of a tn_initializer");
  if (given->initializer.kind > TN_INIT_NORMAL)  // others are of the host
    fail(TN_PLUGIN_FAULT, SubjectName{given->suffix}, "plan declares \"", given->suffix,
         "\" with unknown initializer kind ", given->initializer.kind);
  if (&list != &layer_.buffers) check_unused(given->merge, "merge of a parameter");
  check_dense(parameter.spec, "a parameter");
  for (const auto* declared : {&layer_.parameters, &layer_.buffers})
    for (const LayerParameter& other : *declared)
      if (other.suffix == parameter.suffix)
        fail(TN_PLUGIN_FAULT, SubjectName{given->suffix}, "plan declares \"", given->suffix, "\" twice");
      else if (other.name == parameter.name)
        fail(TN_INVALID, SubjectName{parameter.name}, "\"", other.suffix, "\" and \"", parameter.suffix,
             "\" have the same name, \"", parameter.name, "\"");
  if (merge_name(given->merge) == nullptr)
    fail(TN_PLUGIN_FAULT, SubjectName{given->suffix}, "plan declares \"", given->suffix, "\" with unknown merge ",
         given->merge);
  for (const Dim& dim : parameter.spec.shape)
    if (dim.symbol != TN_SYMBOL_NONE)
      fail(TN_PLUGIN_FAULT, "parameter \"", parameter.name, "\" has a varying shape ",
           to_string(parameter.spec, symbols_));
  list.push_back(std::move(parameter));
  return static_cast<int32_t>(list.size() - 1);
}

// Refuses a storage that parameters and states do not have in this version.
void LayerPlan::check_dense(const Spec& spec, const char* what) const {
  if (spec.storage != TN_DENSE || spec.levels != 0 || !spec.outer.empty())
    fail(TN_UNSUPPORTED, "plan declares ", what, " that is ", storage_name(spec.storage), "; expected dense");
}

void LayerPlan::limit_index(uint32_t input, int64_t limit) {
  if (input >= layer_.index_limits.size()) fail(TN_PLUGIN_FAULT, "plan limits input ", input);
  if (layer_.inputs[input].layer == nullptr) fail(TN_PLUGIN_FAULT, "plan limits input ", input, ", which is absent");
  if (limit < 1) fail(TN_PLUGIN_FAULT, "plan limits input ", input, " to ", limit, "; expected at least 1");
  if (const Spec given = Spec::from(*inputs_.get()[input]); is_float(given.dtype) && given.storage != TN_CSR)
    fail(TN_PLUGIN_FAULT, "plan limits input ", input, ", which has floats; expected integers");
  layer_.index_limits[input].limit = limit;
}

void LayerPlan::exempt_index(uint32_t input, int64_t value) {
  if (input >= layer_.index_limits.size()) fail(TN_PLUGIN_FAULT, "plan exempts an integer of input ", input);
  IndexLimit& limit = layer_.index_limits[input];
  if (limit.limit < 0) fail(TN_PLUGIN_FAULT, "plan exempts ", value, " of input ", input, ", which it does not limit");
  if (value < 0 || value >= limit.limit) limit.exempt = value;
}

// Refuses data layers whose declared values exceed a limit. The values themselves are checked at each step.
void LayerPlan::check_declared_limits() const {
  for (uint32_t i = 0; i < layer_.index_limits.size(); ++i) {
    const IndexLimit& limit = layer_.index_limits[i];
    if (limit.limit < 0) continue;
    if (layer_.branch != nullptr) continue;  // other rows than those of the branch may exceed it
    const Layer& source = *entered(layer_.inputs[i]).layer;
    if (!source.data() || source.data()->storage == TN_CSR || source.data()->index_limit <= limit.limit) continue;
    // Declared values up to the exempt one are those below the limit, and that one.
    if (limit.exempt && *limit.exempt >= limit.limit && *limit.exempt < source.data()->index_limit) continue;
    fail(TN_INVALID, ComponentName{sink_.who()}, SubjectName{inputs_.port(i).name}, "input \"", inputs_.port(i).name,
         "\": data layer \"", source.name, "\" has values from 0 to ", source.data()->index_limit - 1, "; expected ",
         to_string(limit));
  }
}

void LayerPlan::set_state_count(uint32_t count) {
  if (layer_.role != TN_ROLE_METRIC) fail(TN_PLUGIN_FAULT, "only a metric has a state");
  constexpr uint32_t kMostStates = 65536;
  if (count > kMostStates)
    fail(TN_PLUGIN_FAULT, "plan declares ", count, " states; a metric has at most ", kMostStates);
  layer_.state_count = count;
}

int32_t LayerPlan::carry(const tn_spec* spec) {
  if (spec == nullptr) fail(TN_PLUGIN_FAULT, "plan carries a null spec");
  Spec carried = Spec::from(*spec);
  check_dense(carried, "a carried state");
  if (!has_whole_bytes(carried.dtype))
    fail(TN_UNSUPPORTED, "plan carries ", to_string(carried, symbols_), "; expected elements of at least 8 bits");
  for (size_t i = 0; i < carried.shape.size(); ++i) {
    const Dim& dim = carried.shape[i];
    const bool samples = i == 0 && same(dim, tn_dim_symbol(TN_SYMBOL_SAMPLES));
    if (dim.symbol != TN_SYMBOL_NONE && !samples)
      fail(TN_PLUGIN_FAULT, "plan carries ", to_string(carried, symbols_),
           "; its first dimension must be constant or the samples, the others constant");
  }
  layer_.carried.push_back(std::move(carried));
  return static_cast<int32_t>(layer_.carried.size() - 1);
}

int32_t LayerPlan::derive_rows(const tn_rows_rule* rule, tn_dim* rows) {
  if (rule == nullptr || rule->a == nullptr || rows == nullptr) fail(TN_PLUGIN_FAULT, "plan derives rows of null");
  if (!TN_HAS(rule, tn_rows_rule, bound)) fail(TN_PLUGIN_FAULT, "plan derives rows by a rule that is too short");
  DerivedRows made = derived(*rule);
  made.rows = symbols_.derived(made, layer_.name);
  *rows = tn_dim_symbol(made.rows);
  layer_.derived_rows.push_back(std::move(made));
  return static_cast<int32_t>(layer_.derived_rows.size() - 1);
}

// Returns the checked rule, without its symbol.
DerivedRows LayerPlan::derived(const tn_rows_rule& rule) const {
  const auto known = [&](const tn_spec& spec) {
    Spec made = inputs_.in_sequences(Spec::from(spec), layer_.derived_rows);
    if (!made.shape.empty() && !inputs_.depend_on(made.shape[0].symbol) && made.storage != TN_RAGGED)
      fail(TN_PLUGIN_FAULT, "plan derives rows of ", to_string(made, symbols_), ", which no input has");
    return made;
  };
  const Spec a = known(*rule.a);
  const Spec b = rule.b == nullptr ? Spec{} : known(*rule.b);
  DerivedRows made;
  made.rule = rule.rule;
  made.window = rule.window;
  made.stride = rule.stride;
  made.padding = rule.padding;
  made.count = rule.count;
  if (made.rule == TN_ROWS_DATA && rule.bound == nullptr) fail(TN_PLUGIN_FAULT, "plan writes rows without a bound");
  if (made.rule == TN_ROWS_DATA) {
    made.bound = given_dim(*rule.bound);
    if (!inputs_.depend_on(made.bound.symbol))
      fail(TN_PLUGIN_FAULT, "plan bounds rows by ", to_string(made.bound, symbols_), ", which no input has");
  }
  if (a.storage == TN_RAGGED) {
    made.first = a.shape.at(0).symbol;
    made.outer = a.outer;
  } else if (made.rule == TN_ROWS_DATA && !a.shape.empty()) {
    made.outer = {a.shape[0]};
  }
  if (made.rule == TN_ROWS_CONCATENATED && b.storage == TN_RAGGED) made.second = b.shape.at(0).symbol;
  check_rule(made, a, b);
  check_unused_members(rule);
  return made;
}

// Members that a rule does not use would otherwise tell equal rules apart.
void LayerPlan::check_unused_members(const tn_rows_rule& rule) {
  const bool strided = rule.rule == TN_ROWS_STRIDED;
  const bool unused = (!strided && (rule.window != 0 || rule.stride != 0 || rule.padding != 0)) ||
                      (rule.rule != TN_ROWS_FIRST && rule.count != 0) ||
                      (rule.rule != TN_ROWS_CONCATENATED && rule.b != nullptr) ||
                      (rule.rule != TN_ROWS_DATA && rule.bound != nullptr);
  if (unused) fail(TN_PLUGIN_FAULT, "plan derives rows by rule ", rule.rule, " with members that it does not use");
}

void LayerPlan::check_rule(const DerivedRows& derived, const Spec& a, const Spec& b) const {
  const auto refuse = [&](const auto&... parts) { fail(TN_INVALID, parts..., ", got ", to_string(a, symbols_)); };
  if (derived.rule < TN_ROWS_CONCATENATED || derived.rule > TN_ROWS_DATA)
    fail(TN_UNSUPPORTED, "rows by rule ", derived.rule, ", which this host does not have");
  if (derived.rule == TN_ROWS_CONCATENATED &&
      (derived.first == 0 || derived.second == 0 || !same(a.outer.at(0), b.outer.at(0))))
    fail(TN_INVALID, "expected sequences of the same samples, got ", to_string(a, symbols_), " and ",
         to_string(b, symbols_));
  if (derived.outer.empty()) refuse("expected sequences");
  if (derived.rule == TN_ROWS_STRIDED && (derived.window < 1 || derived.stride < 1 || derived.padding < 0))
    fail(TN_PLUGIN_FAULT, "rows by a window of ", derived.window, ", a stride of ", derived.stride,
         " and a padding of ", derived.padding, "; expected at least 1, 1 and 0");
  if (derived.rule == TN_ROWS_FIRST && derived.count < 0)
    fail(TN_PLUGIN_FAULT, "the first ", derived.count, " rows; expected at least 0");
  for (const int32_t symbol : {derived.first, derived.second})
    if (derived.rule != TN_ROWS_DATA && symbols_.is_written(symbol))
      fail(TN_UNSUPPORTED, symbols_.name_of(symbol),
           " are known only while a step runs; they can be read, but no rows "
           "can be derived from them");
}

void LayerPlan::take_outputs() {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (!outputs_[i])
      fail(TN_PLUGIN_FAULT, ComponentName{sink_.who()}, "plan did not declare output \"",
           value_name(type_.description.outputs, i), "\"");
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

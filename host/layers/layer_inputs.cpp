// SPDX-License-Identifier: Apache-2.0
#include "host/layers/layer_inputs.h"

#include <algorithm>

#include "base/nearest.h"
#include "core/error.h"
#include "host/layers/cond_layers.h"
#include "host/layers/scan_layers.h"

namespace tenon::host {

namespace {

// Returns such as "expected 2 inputs", or "expected 1 to 3 inputs" where some are optional.
std::string expected_count(const std::vector<Port>& ports) {
  const auto is_required = [](const Port& port) { return (port.flags & TN_PORT_OPTIONAL) == 0; };
  const auto least = std::count_if(ports.begin(), ports.end(), is_required);
  const auto most = static_cast<std::ptrdiff_t>(ports.size());
  if (is_variadic(ports)) return text("expected at least ", least, least == 1 ? " input" : " inputs");
  if (least == most) return text("expected ", most, most == 1 ? " input" : " inputs");
  return text("expected ", least, " to ", most, " inputs");
}

}  // namespace

std::vector<LayerOutput> in_port_order(const std::vector<Port>& ports, const std::vector<LayerOutput>& inputs,
                                       const std::vector<std::string>& names) {
  std::vector<LayerOutput> ordered;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string& name = names.at(i);
    const auto port = std::find_if(ports.begin(), ports.end(), [&](const Port& each) { return each.name == name; });
    if (port == ports.end()) {
      std::vector<std::string> known;
      for (const Port& each : ports) known.push_back(each.name);
      fail(TN_INVALID, SubjectName{name}, "unknown input \"", name, "\"", base::suggestion(name, known));
    }
    const bool variadic = (port->flags & TN_PORT_VARIADIC) != 0;
    const auto first = static_cast<size_t>(port - ports.begin());
    const size_t place = variadic ? std::max(first, ordered.size()) : first;
    if (place >= ordered.size()) ordered.resize(place + 1);
    if (ordered[place].layer != nullptr) fail(TN_INVALID, SubjectName{name}, "input \"", name, "\" is given twice");
    ordered[place] = inputs[i];
  }
  return ordered;
}

LayerInputs::LayerInputs(const std::vector<Port>& ports, const std::vector<LayerOutput>& inputs, RaggedSymbols& symbols,
                         Scan* scan, const Branch* branch)
    : ports_(ports), names_(symbols), scan_(scan), branch_(branch) {
  check(inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].layer == nullptr) {
      specs_.emplace_back();
      continue;
    }
    Spec spec = seen(i, inputs[i], symbols);
    const bool takes_integers = (port(i).flags & (TN_PORT_INTEGER | TN_PORT_ANY)) != 0;
    if (is_float(spec.dtype) || !takes_integers) spec.dtype = TN_COMPUTE;  // the machine converts it
    specs_.push_back(spec);
  }
  for (const Spec& spec : specs_) views_.push_back(spec.view());
  for (size_t i = 0; i < inputs.size(); ++i) pointers_.push_back(inputs[i].layer == nullptr ? nullptr : &views_[i]);
}

// Returns the spec of an input as the layer sees it: inside of a scan or a branch others than outside.
Spec LayerInputs::seen(size_t number, const LayerOutput& input, RaggedSymbols& symbols) const {
  if (scan_ != nullptr) return in_steps(*scan_, input, SubjectName{port(number).name}, symbols);
  if (branch_ == nullptr) return input.layer->outputs.at(input.output);
  Spec spec = in_branch(*branch_, input, SubjectName{port(number).name}, names_);
  const bool outside = spec.storage == TN_RAGGED && input.layer->branch.get() != branch_;
  if (outside && (port(number).flags & TN_PORT_ANY) == 0)
    fail(TN_INVALID, SubjectName{port(number).name}, "input \"", port(number).name, "\": ", layer_label(*input.layer),
         " has ", to_string(spec, names_), " outside of ", branch_label(*branch_),
         "; its sequences in the branch are an input of it");
  return spec;
}

const Port& LayerInputs::port(size_t input) const { return port_of(ports_, input); }

void LayerInputs::check(const std::vector<LayerOutput>& inputs) const {
  const size_t given = inputs.size();
  if (given > ports_.size() && !is_variadic(ports_)) fail(TN_INVALID, expected_count(ports_), ", got ", given);
  for (size_t i = 0; i < std::max(given, ports_.size()); ++i) {
    const bool absent = i >= given || inputs[i].layer == nullptr;
    if (absent && (port(i).flags & TN_PORT_OPTIONAL) == 0)
      fail(TN_INVALID, SubjectName{port(i).name}, "input \"", port(i).name, "\" is missing; ", expected_count(ports_),
           ", got ", given);
    if (!absent) check(i, inputs[i]);
  }
}

void LayerInputs::check(size_t number, const LayerOutput& input) const {
  const Port& to = port(number);
  if (input.output >= input.layer->outputs.size())
    fail(TN_INVALID, SubjectName{to.name}, "input \"", to.name, "\": ", layer_label(*input.layer), " has no output ",
         input.output, input.layer->role == TN_ROLE_METRIC ? "; it is a metric" : "");
  const Spec& spec = input.layer->outputs[input.output];
  const bool taken_sparse = spec.storage == TN_CSR && (to.flags & TN_PORT_SPARSE) != 0;
  if ((to.flags & TN_PORT_INTEGER) != 0 && is_float(spec.dtype) && !taken_sparse)
    fail(TN_INVALID, SubjectName{to.name}, "input \"", to.name, "\": expected integers, got ", to_string(spec, names_),
         " of ", layer_label(*input.layer));
  if (spec.storage == TN_CSR && (to.flags & TN_PORT_SPARSE) == 0)
    fail(TN_INVALID, SubjectName{to.name}, "input \"", to.name, "\": ", layer_label(*input.layer),
         " is sparse (csr), which this layer does not take");
}

Spec LayerInputs::in_sequences(Spec spec, const std::vector<DerivedRows>& derived) const {
  spec.storage = TN_DENSE;
  spec.levels = 0;
  spec.outer.clear();
  for (const Dim& dim : spec.shape)
    if (!depend_on(dim.symbol) &&
        std::none_of(derived.begin(), derived.end(), [&](const DerivedRows& each) { return each.rows == dim.symbol; }))
      fail(TN_PLUGIN_FAULT, "plan uses rows of none of the inputs: ", to_string(spec, names_));
  if (spec.shape.empty() || !is_ragged(spec.shape[0])) return spec;
  if (scan_ != nullptr && same(spec.shape[0], scan_->steps)) return spec;
  if (branch_ != nullptr && same(spec.shape[0], branch_->rows)) return spec;
  spec.storage = TN_RAGGED;
  const int32_t symbol = spec.shape[0].symbol;
  for (const DerivedRows& each : derived)
    if (each.rows == symbol) spec.outer = each.outer;
  if (spec.outer.empty()) spec.outer = around(symbol);
  spec.levels = static_cast<uint32_t>(spec.outer.size());
  if (spec.outer.empty()) fail(TN_PLUGIN_FAULT, "plan uses rows of none of the inputs: ", to_string(spec, names_));
  return spec;
}

bool LayerInputs::depend_on(int32_t symbol) const {
  if (symbol == TN_SYMBOL_NONE || symbol == TN_SYMBOL_SAMPLES) return true;
  const auto has = [&](const Dim& dim) { return dim.symbol == symbol; };
  return std::any_of(specs_.begin(), specs_.end(), [&](const Spec& spec) {
    return std::any_of(spec.shape.begin(), spec.shape.end(), has) ||
           std::any_of(spec.outer.begin(), spec.outer.end(), has);
  });
}

// Returns the dimensions around the row dimension `symbol`, innermost first, as in the inputs; empty if none has it.
Shape LayerInputs::around(int32_t symbol) const {
  for (const Spec& input : specs_) {
    if (input.storage != TN_RAGGED) continue;
    if (input.shape[0].symbol == symbol) return input.outer;
    for (size_t i = 0; i < input.outer.size(); ++i)
      if (input.outer[i].symbol == symbol)
        return {input.outer.begin() + static_cast<std::ptrdiff_t>(i) + 1, input.outer.end()};
  }
  return {};
}

}  // namespace tenon::host

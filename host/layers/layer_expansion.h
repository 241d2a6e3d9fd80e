// The expansion of a layer: inner layers that compute its outputs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/layer.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/topology.h"
#include "host/layers/layer_inputs.h"
#include "host/plugins/error_sink.h"
#include "host/plugins/registry.h"

namespace tenon::host {

using namespace core;

// Calls a type's expand, which adds inner layers. The layer then stands for their outputs.
class LayerExpansion {
 public:
  // Makes an inner layer; parameter_name: the prefix of its parameters' names.
  using MakeInner = std::function<LayerOutput(const std::string& type, std::vector<LayerOutput> inputs,
                                              Values attributes, const std::string& parameter_name)>;

  // Borrows everything but make_inner.
  LayerExpansion(const LayerType& type, const LayerInputs& inputs, Layer& layer, ErrorSink& sink, MakeInner make_inner);

  // Leaves the layer unchanged if the type has no expand or expand returns TN_UNSUPPORTED.
  void run(const AttributesView& attributes);

  // For a function that gets an expander beside others. Fills one in whose object this is.
  void fill(tn_expander& expander, const AttributesView& attributes);
  // Gives a value a number, and returns the value of a number.
  tn_ref add(LayerOutput value);
  [[nodiscard]] const LayerOutput& value(tn_ref ref) const;

  ErrorSink& sink() { return sink_; }  // takes the failures of the callbacks

 private:
  [[nodiscard]] LayerOutput inner(const tn_expansion_layer* given) const;
  [[nodiscard]] LayerOutput output_of(tn_ref first, uint32_t number) const;
  [[nodiscard]] tn_ref input(uint32_t number) const {
    return number < layer_.inputs.size() ? static_cast<tn_ref>(number) : -1;
  }
  tn_ref add_inner(const tn_expansion_layer* given) { return add(inner(given)); }
  tn_ref add_output(tn_ref first, uint32_t number) { return add(output_of(first, number)); }
  void set_output(uint32_t port, tn_ref ref);
  void check_output(size_t number) const;
  void check_cost(const LayerOutput& output) const;

  const LayerType& type_;
  const LayerInputs& inputs_;
  Layer& layer_;
  ErrorSink& sink_;
  const MakeInner make_inner_;
  std::vector<LayerOutput> values_;  // by tn_ref: inputs, then inner layers and their further outputs
};

}  // namespace tenon::host

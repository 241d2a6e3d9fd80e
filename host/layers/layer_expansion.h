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

namespace tenon {

// Calls a type's expand and makes the layer a name for the inner layers that it adds.
class LayerExpansion {
 public:
  // Makes an inner layer; parameter_name: the prefix of its parameters' names.
  using MakeInner = std::function<Expression(const std::string& type, std::vector<Expression> inputs, Values attributes,
                                             const std::string& parameter_name)>;

  // Borrows everything but make_inner.
  LayerExpansion(const LayerType& type, const LayerInputs& inputs, Layer& layer, ErrorSink& sink, MakeInner make_inner);

  // Leaves the layer as it is where the type has no expand, or expand returns TN_UNSUPPORTED.
  void run(const AttributesView& attributes);

  ErrorSink& sink() { return sink_; }  // of the callbacks

 private:
  void set_callbacks(tn_expander& expander);
  tn_ref add(Expression value);
  [[nodiscard]] const Expression& value(tn_ref ref) const;
  [[nodiscard]] Expression inner(const tn_expansion_layer* given) const;
  [[nodiscard]] Expression output_of(tn_ref first, uint32_t number) const;
  void set_output(uint32_t port, tn_ref ref);
  void check_output(size_t number) const;
  void check_cost(const Expression& output) const;

  const LayerType& type_;
  const LayerInputs& inputs_;
  Layer& layer_;
  ErrorSink& sink_;
  const MakeInner make_inner_;
  std::vector<Expression> values_;  // by tn_ref: inputs, then inner layers and their further outputs
};

}  // namespace tenon

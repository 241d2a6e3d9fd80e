// The plan of a layer: shapes of outputs, parameters, buffers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/layer.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "core/topology.h"
#include "host/layers/layer_inputs.h"
#include "host/layers/ragged_symbols.h"
#include "host/plugins/error_sink.h"
#include "host/plugins/registry.h"

namespace tenon::host {

using namespace core;

// Calls a type's plan and writes its outputs, parameters, buffers, index limits and states into the layer.
class LayerPlan {
 public:
  // Borrows everything.
  LayerPlan(const LayerType& type, const LayerInputs& inputs, RaggedSymbols& symbols, Layer& layer, ErrorSink& sink)
      : type_(type), inputs_(inputs), symbols_(symbols), layer_(layer), sink_(sink) {}

  void run(const AttributesView& attributes);

  ErrorSink& sink() { return sink_; }  // takes the failures of the callbacks

 private:
  void set_callbacks(tn_planner& planner);
  void set_output(uint32_t number, const tn_spec* spec);
  int32_t declare(const tn_parameter* given, std::vector<LayerParameter>& list) const;
  int32_t declare_parameter(const tn_parameter* given) { return declare(given, layer_.parameters); }
  int32_t declare_buffer(const tn_parameter* given) { return declare(given, layer_.buffers); }
  int32_t derive_rows(const tn_rows_rule* rule, tn_dim* rows);
  int32_t carry(const tn_spec* spec);
  void limit_index(uint32_t input, int64_t limit);
  void exempt_index(uint32_t input, int64_t value);
  void check_declared_limits() const;
  void set_state_count(uint32_t count);
  [[nodiscard]] DerivedRows derived(const tn_rows_rule& rule) const;
  void check_dense(const Spec& spec, const char* what) const;
  static void check_unused_members(const tn_rows_rule& rule);
  void check_rule(const DerivedRows& derived, const Spec& a, const Spec& b) const;
  void take_outputs();
  void check_cost() const;

  const LayerType& type_;
  const LayerInputs& inputs_;
  RaggedSymbols& symbols_;
  Layer& layer_;
  ErrorSink& sink_;
  std::vector<std::optional<Spec>> outputs_;
};

}  // namespace tenon::host

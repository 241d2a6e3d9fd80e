// One step of a layer that reads earlier rows: layers that compute it, and what goes from step to step.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/step.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/topology.h"
#include "host/layers/layer_expansion.h"

namespace tenon::host {

using namespace core;

// What goes from step to step of a layer. All layers are data layers of the step.
struct StepParts {
  struct Memory {
    LayerRef data;
    std::optional<size_t> input;  // of the whole layer: the first value; none: zeros
    LayerOutput next;
  };
  struct History {
    LayerRef data;  // the values of earlier steps
    LayerOutput value;
  };
  std::vector<Memory> memories;
  std::vector<History> histories;
};

// Data layers that all layers of a step share.
struct StepSources {
  LayerRef position;  // int64 [samples]
  LayerRef past;      // int64, sequences
};

// Returns the type's table "tenon.step/1", checked; nothing if it offers none.
[[nodiscard]] std::optional<tn_step> step_table(const LayerType& type, const std::string& who);

// Calls a type's step, which adds inner layers, and data layers for what it carries.
class LayerStepper {
 public:
  using MakeData = std::function<LayerRef(const std::string& name, DataSource source)>;

  // Borrows everything but make_data. expansion: of `layer`, whose inputs are those of the step.
  LayerStepper(const LayerType& type, const LayerInputs& inputs, Layer& layer, LayerExpansion& expansion,
               const StepSources& sources, MakeData make_data);

  // Sets the outputs of the layer that step sets; `count`: of the whole layer. Others stand for nothing.
  [[nodiscard]] StepParts run(const tn_step& table, const AttributesView& attributes, size_t count);

  ErrorSink& sink() { return expansion_.sink(); }  // takes the failures of the callbacks

 private:
  void set_callbacks(tn_stepper& stepper);
  [[nodiscard]] tn_ref position() { return expansion_.add({sources_.position, 0}); }
  [[nodiscard]] tn_ref past() { return expansion_.add({sources_.past, 0}); }
  [[nodiscard]] tn_ref memory(const tn_step_memory* given);
  [[nodiscard]] tn_ref history(tn_ref value);
  void set_next(tn_ref memory, tn_ref value);
  [[nodiscard]] DataSource source_of(const Spec& spec, const char* what) const;
  void check_memories() const;

  const LayerType& type_;
  const LayerInputs& inputs_;
  Layer& layer_;
  LayerExpansion& expansion_;
  const StepSources& sources_;
  const MakeData make_data_;
  StepParts parts_;
};

}  // namespace tenon::host

// Expressions of layers, and the topology traced back from outputs. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/layer.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/attribute.h"
#include "core/names.h"
#include "core/parameter_set.h"
#include "core/shape.h"

namespace tenon {

struct Layer;
using LayerRef = std::shared_ptr<const Layer>;

// One output of a layer: what users hold, and what names a model.
struct Expression {
  LayerRef layer;  // null: an optional input that is absent
  uint32_t output = 0;
};

// What a data layer is fed.
struct DataSource {
  tn_dtype dtype = TN_COMPUTE;  // as fed
  std::vector<int64_t> shape;   // of one sample
  int64_t index_limit = -1;
  double scale = 1, offset = 0;  // integers become scale * x + offset where they flow into a float port
  int32_t storage = TN_DENSE;    // or TN_RAGGED: `shape` is of one row; or TN_CSR: `shape` is the width alone
  uint32_t levels = 0;           // TN_RAGGED: 1 or 2
  std::string sequence;          // TN_RAGGED: data layers with the same have sequences of equal length
};

// Rows that a layer makes by putting one of two sequences behind the other: symbols of the rows.
struct JoinedRows {
  int32_t rows = 0, first = 0, second = 0;
};

// A parameter or buffer that a layer declared; number i of each kind is index i of the builder.
struct LayerParameter {
  std::string name;  // full: "hidden.weight"
  Spec spec;
  tn_initializer initializer = {};
  uint32_t flags = 0;
  Multipliers multipliers;
};

// An immutable layer that knows its inputs. Made by the host's layer factory, which runs plan and expand.
struct Layer {
  Layer() = default;
  // Drops a long chain of layers one by one, not one inside the other.
  ~Layer();
  Layer(const Layer&) = default;
  Layer(Layer&&) = default;
  Layer& operator=(const Layer&) = default;
  Layer& operator=(Layer&&) = default;

  std::string name;
  std::string type;  // "data" for data layers
  int32_t role = TN_ROLE_LAYER;
  std::string parameter_name;
  std::vector<Expression> inputs;  // in port order
  Values given;                    // attributes as the user gave them, host attributes included
  std::vector<Value> attributes;   // the type's own, checked, in the order of their declaration
  std::vector<Spec> outputs;
  std::vector<LayerParameter> parameters, buffers;
  std::vector<int64_t> index_limits;  // per input; -1: none
  double drop_rate = 0;               // of output 0, in training
  uint32_t state_count = 0;           // metrics
  std::vector<JoinedRows> joined;     // that its plan asked for
  std::optional<DataSource> data;
  std::vector<Expression> expansion;  // not empty: the layer is only a name for these, one for each output
  LayerRef dropped_next;              // of the destructor

  [[nodiscard]] bool expanded() const { return !expansion.empty(); }
};

// The layer in messages: 'layer "hidden" (fc)'.
[[nodiscard]] std::string layer_label(const Layer& layer);

// The layer that computes an expression: expansions followed to their end.
[[nodiscard]] Expression resolved(Expression expression);

struct Topology {
  std::vector<Expression> outputs;
  std::vector<LayerRef> layers;  // as the user made them: every layer after its inputs; insides of expansions left out
  std::vector<LayerRef> leaves;  // what computes: expansions opened, every leaf after its inputs

  // Traces back from the outputs. TN_INVALID when two different layers have one name.
  static Topology trace(std::vector<Expression> outputs);
  // Every parameter and buffer, for ParameterSet::create.
  [[nodiscard]] std::vector<ParameterDeclaration> declarations() const;
  // {"version": 1, "layers": [...], "outputs": [...]}: what a model file keeps. docs/model-file.md has the form.
  [[nodiscard]] nlohmann::json to_json(const DataNames& names = {}) const;
};

// "name", or "name:1" for an output other than the first.
[[nodiscard]] std::string expression_name(const Expression& expression);

}  // namespace tenon

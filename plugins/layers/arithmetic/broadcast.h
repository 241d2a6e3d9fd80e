// Layers that join several values element by element, with NumPy's rules of broadcasting for the shape of a sample.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <tenon/plugin.hpp>
#include <vector>

namespace tenon::arithmetic {

// Inputs begin with the samples (or with the rows of sequences), which all share. The other dimensions, the shape of
// one sample, are aligned at the end; an input with fewer of them, or with a dimension of 1, has the same value along
// them.

// The shape of the result. Throws, naming the port and both shapes, where the shapes do not fit.
tn::Spec broadcast_shape(const tn::Planner& planner);

// The inputs as operands of one program over the result.
struct Operands {
  std::vector<tn::Tensor> values;
  std::vector<bool> is_full;  // else one value for each row of the grid
  int32_t leading = 1;        // dimensions that are rows of the grid
  bool plain = true;          // all inputs have the shape of the result
  tn::Spec shape;             // of the result

  // The next input of `program` for operand i.
  [[nodiscard]] tn::Float declare(tn::Program& program, size_t i) const {
    return is_full[i] ? program.full() : program.per_row();
  }
};
Operands broadcast(tn::Builder& body, std::vector<tn::Tensor> inputs);

// `value` written out in a shape to which it can be broadcast.
tn::Tensor broadcast_to(tn::Builder& body, const tn::Tensor& value, const tn::Spec& shape);

// Adds the layers of comparisons.cpp.
void add_comparisons(tn::Plugin& plugin);
// Adds the layer of expand.cpp.
void add_expand(tn::Plugin& plugin);
// Adds the layer of formula.cpp.
void add_formula(tn::Plugin& plugin);
// Adds the layer of multiplex.cpp.
void add_multiplex(tn::Plugin& plugin);

}  // namespace tenon::arithmetic

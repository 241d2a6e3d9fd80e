// The costs of a machine: computes the mean of each, and refuses a training that would ignore one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/topology.h"
#include "host/compile/lowering/lowering.h"

namespace tenon::host {

using namespace core;

struct Cost {
  ValueId per_sample = kNoValue;  // [samples], or [rows] of a ragged dimension
  ValueId mean = kNoValue;        // []: the mean times the coefficient
  double coefficient = 1;
  std::string name;  // of the output
};

// Scalars with 1 / size of a symbol (0 for a size of 0), in the compute type. The machine writes them before each
// forward.
class Inverses {
 public:
  explicit Inverses(tn_dtype compute = TN_F32) : compute_(compute) {}
  // Returns the scalar of a symbol; the first call for a symbol adds it to the graph. If a call writes the size, the
  // graph computes the scalar from it: nodes belong to layer number `layer`.
  ValueId of(Graph& graph, int32_t symbol, int32_t layer);
  // The scalars that the machine writes.
  [[nodiscard]] const std::map<int32_t, ValueId>& by_symbol() const { return by_symbol_; }

 private:
  tn_dtype compute_;
  std::map<int32_t, ValueId> by_symbol_;
  std::map<int32_t, ValueId> computed_;
};

// Appends the mean of every cost that is an output, times its coefficient: over samples, or over rows if the cost has
// one value per row.
std::vector<Cost> add_costs(Graph& graph, const Topology& topology, const Lowered& lowered, tn_dtype compute,
                            Inverses& inverses);

// Throws TN_INVALID naming a cost that a training with these outputs would ignore.
void check_costs(const Topology& topology);

}  // namespace tenon::host

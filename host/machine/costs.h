// The costs of a machine: the mean of each, and the refusal of a training that would leave one out.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "core/graph/graph.h"
#include "core/topology.h"
#include "host/compile/lowering.h"

namespace tenon {

struct Cost {
  ValueId per_sample = kNoValue;  // or per row
  ValueId mean = kNoValue;
};

// Device scalars of 1 / the size of a symbol, in the compute type, which the machine writes before each forward.
class Inverses {
 public:
  explicit Inverses(tn_dtype compute = TN_F32) : compute_(compute) {}
  // Adds the value to the graph at the first call for a symbol.
  ValueId of(Graph& graph, int32_t symbol);
  [[nodiscard]] const std::map<int32_t, ValueId>& by_symbol() const { return by_symbol_; }

 private:
  tn_dtype compute_;
  std::map<int32_t, ValueId> by_symbol_;
};

// Reduces every cost output at the root: to the mean over samples, or over rows where it has one value for each.
std::vector<Cost> add_costs(Graph& graph, const Topology& topology, const Lowered& lowered, tn_dtype compute,
                            Inverses& inverses);

// TN_INVALID names a cost that a training with these outputs would leave out.
void check_costs(const Topology& topology);

}  // namespace tenon

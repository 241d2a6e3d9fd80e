// Lowers the branches of a topology. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "core/graph/graph.h"
#include "core/topology.h"

namespace tenon::host {

using namespace core;

// Returns the spec of a value, of kNoValue an empty one, that a layer inside of `branch`, null for none, was planned
// with: the rows of the branch are no sequences there.
[[nodiscard]] Spec inside_of(const Branch* branch, const Graph& graph, ValueId value);

// Records the parts of branches into a graph.
class CondLowering {
 public:
  explicit CondLowering(Graph& graph) : graph_(graph) {}

  // Returns the value of an output as layers inside of a branch read it: that of a layer inside and a constant one as
  // it is, of others from outside the rows of the branch.
  ValueId inside(const Branch& branch, const LayerOutput& output, ValueId value, GraphWriter writer);
  // The value of an output, and in the compute type if `floats`.
  using ValueOf = std::function<ValueId(const LayerOutput& output, bool floats)>;
  // Records a part. Returns the values of its outputs.
  std::vector<ValueId> part(const Layer& layer, const ValueOf& value_of, GraphWriter writer);

 private:
  ValueId around(const Cond& cond, const LayerOutput& output, ValueId value, GraphWriter& writer);
  ValueId chosen(const Dim& all, ValueId value, ValueId rows, GraphWriter& writer);
  ValueId input(const Layer& layer, const ValueOf& value_of, GraphWriter& writer);
  std::vector<ValueId> end(const Layer& layer, const ValueOf& value_of, GraphWriter& writer);

  Graph& graph_;
  std::map<const Branch*, ValueId> rows_;                  // the numbers of the rows of a branch
  std::map<std::pair<ValueId, ValueId>, ValueId> chosen_;  // by value and numbers of rows
};

}  // namespace tenon::host

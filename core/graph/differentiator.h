// The derivation of a graph: a rule for each operation, in its file. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <vector>

#include "core/graph/graph.h"
#include "core/graph/passes.h"

namespace tenon {

class Differentiator {
 public:
  Differentiator(Graph& graph, const std::vector<ValueId>& wanted, const std::set<ValueId>& by_rows, tn_dtype compute);
  void run(const std::vector<GradientSeed>& seeds);
  [[nodiscard]] ValueId gradient(ValueId value) const { return gradients_[index(value)]; }

 private:
  static size_t index(ValueId value) { return static_cast<size_t>(value); }
  [[nodiscard]] bool needed(ValueId value) const { return value != kNoValue && needed_[index(value)]; }
  GraphWriter writer(int32_t layer) { return {graph_, layer, true, compute_}; }
  // Adds a contribution to the gradient of a value.
  void add(ValueId value, ValueId contribution, int32_t layer);

  // Adds to the gradients of the node's inputs from those of its outputs, of which there is at least one.
  void derive(const Node& node, const Pointwise& pointwise);
  void derive(const Node& node, const Gemm& gemm);
  void derive(const Node& node, const Gather& gather);
  void derive(const Node& node, const ScatterAdd& scatter);
  void derive(const Node& node, const Move& move);
  void derive(const Node& node, const View& view);
  void derive(const Node& node, const Segment& segment);
  void derive(const Node& node, const Coalesce& coalesce);
  void derive(const Node& node, const NativeCall& native);
  ValueId largest(const Node& node, const Segment& segment, ValueId given);
  void add_rows(const Node& gather);
  void finish_rows(ValueId table, const std::vector<GraphWriter::Contribution>& contributions);

  Graph& graph_;
  const std::set<ValueId> wanted_;
  const std::set<ValueId>& by_rows_;
  tn_dtype compute_;
  std::map<ValueId, std::vector<GraphWriter::Contribution>> rows_;
  std::map<ValueId, int32_t> rows_layer_;  // the layer of the first contribution
  std::vector<bool> needed_;               // on a path from a wanted value; only values that existed at the start
  std::vector<ValueId> gradients_;         // likewise
};

}  // namespace tenon

// Differentiates a graph; the file of each operation has its rule. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <vector>

#include "core/graph/graph.h"
#include "core/graph/passes/passes.h"

namespace tenon::core {

// Reverse mode over the nodes of a graph: appends the nodes that compute gradients.
class Differentiator {
 public:
  // missing: as of differentiate.
  Differentiator(Graph& graph, const std::vector<ValueId>& wanted, const std::set<ValueId>& row_sparse,
                 tn_dtype compute, std::vector<MissingBackward>* missing);
  void run(const std::vector<GradientSeed>& seeds);
  [[nodiscard]] ValueId gradient(ValueId value) const { return gradients_[at(value)]; }

  // For the rules of operations.
  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] bool needed(ValueId value) const { return value != kNoValue && needed_[at(value)]; }
  // Whether the caller asked for the gradient of the value itself.
  [[nodiscard]] bool is_wanted(ValueId value) const { return wanted_.contains(value); }
  [[nodiscard]] bool is_row_sparse(ValueId table) const { return row_sparse_.contains(table); }
  // Completes the memory of a backward loop that carries the gradient of this one.
  void end_memory(const Node& memory);
  GraphWriter writer(int32_t layer) { return {graph_, layer, true, compute_}; }
  // Adds a contribution to the gradient of a value.
  void add(ValueId value, ValueId contribution, int32_t layer);
  // Adds the contribution of a gather to the row-sparse gradient of its table.
  void add_rows(const Node& gather);
  // Adds a contribution to the gradient of some rows of a table, row-sparse or not.
  void add_rows(ValueId table, const GraphWriter::Contribution& contribution, int32_t layer);
  // Reports that the node which is being differentiated has no backward; throws unless the caller collects such nodes.
  void no_backward(const std::string& reason);
  // Adds an output to node `number`, a value of its own.
  ValueId append_value(int32_t number, const Spec& spec);
  // Adds an output to node `number` that it does not compute.
  void append_nothing(int32_t number);
  // Adds a node, still without outputs; returns its number.
  int32_t append(Node node);
  // Adds an output to node `number`: a contribution to the gradient of `input`, or kNoValue if that is not needed.
  void append_output(int32_t number, ValueId input, int32_t layer);

 private:
  void find_needed();
  // Begins the backward of a loop; last: number of its last LastStep.
  void begin_loop(size_t last);
  void finish_rows(ValueId table, const std::vector<GraphWriter::Contribution>& contributions);

  Graph& graph_;
  const std::set<ValueId> wanted_;
  const std::set<ValueId>& row_sparse_;
  tn_dtype compute_;
  // By table: contributions to gradients that are to be row-sparse.
  std::map<ValueId, std::vector<GraphWriter::Contribution>> rows_;
  std::map<ValueId, int32_t> rows_layer_;  // by table: the layer of the first contribution
  std::vector<MissingBackward>* missing_;
  size_t node_ = 0;                     // that is being differentiated
  std::set<int32_t> begun_;             // loops whose backward has begun
  std::map<ValueId, ValueId> carried_;  // by output of a Memory: that of the one which carries its gradient
  std::vector<bool> needed_;            // per value that existed at the start: depends on a wanted value
  std::vector<ValueId> gradients_;      // per value that existed at the start: its gradient so far, or kNoValue
};

}  // namespace tenon::core

// What is done to a whole graph: derivation, and joining of nodes. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <set>
#include <vector>

#include "core/graph/graph.h"

namespace tenon {

// Where backward begins: a value and its gradient.
struct GradientSeed {
  ValueId value;
  ValueId gradient;
};

// Appends the nodes that compute the gradients of `wanted`, and only those; gives the gradient of each, kNoValue
// where nothing depends on it. The gradient of a value in `by_rows` is TN_ROWS where it is read through gathers alone.
// Throws TN_UNSUPPORTED naming the layer where a native kernel has no backward.
std::map<ValueId, ValueId> differentiate(Graph& graph, const std::vector<GradientSeed>& seeds,
                                         const std::vector<ValueId>& wanted, tn_dtype compute,
                                         const std::set<ValueId>& by_rows = {});

// Makes a pointwise node the epilogue of the gemm that computes one of its inputs, where `better` answers so for the
// gemm with the epilogue. Run after fuse.
using EpilogueChoice = std::function<bool(const Node& gemm)>;
void attach_epilogues(Graph& graph, const EpilogueChoice& better);

// Makes one node of a gather and the sum over segments of what it gave, where nobody else reads that. After fuse.
void join_bags(Graph& graph, const std::vector<ValueId>& kept);

// Joins pointwise nodes that follow one another on the same grid into one program each. `kept` are values that must
// stay readable. Drops nodes whose outputs nobody needs.
void fuse(Graph& graph, const std::vector<ValueId>& kept);

}  // namespace tenon

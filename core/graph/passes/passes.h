// Passes over a whole graph: differentiation and fusion. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <set>
#include <vector>

#include "core/graph/graph.h"

namespace tenon::core {

// A value where backward begins, and its gradient.
struct GradientSeed {
  ValueId value;
  ValueId gradient;
};

// A node that a gradient reaches and that has no backward, and why.
struct MissingBackward {
  size_t node;
  std::string reason;
};

// Appends the nodes that compute the gradients of `wanted`, and no others. Returns the gradient of each; kNoValue if no
// seed depends on it. The gradient of a value in `row_sparse` is TN_ROW_SPARSE if the value is read by gathers only.
// If a native kernel on the way lacks a backward: appends it to `missing` and continues without the gradients of its
// inputs; without `missing` throws TN_UNSUPPORTED naming the layer.
std::map<ValueId, ValueId> differentiate(Graph& graph, const std::vector<GradientSeed>& seeds,
                                         const std::vector<ValueId>& wanted, tn_dtype compute,
                                         const std::set<ValueId>& row_sparse = {},
                                         std::vector<MissingBackward>* missing = nullptr);

// Whether a node that does the work of several nodes is better than these.
using NodeChoice = std::function<bool(const Node& node)>;

// Makes a pointwise node the epilogue of the product that computes one of its inputs if `better` returns true for the
// product with the epilogue. Run after fuse.
void attach_epilogues(Graph& graph, const NodeChoice& better);

// Lets a coalesce compute contributions itself that products of one term (k = 1) make for it alone, if `better` returns
// true for the node, and they are not in `kept`. Run after differentiate, before join_gathers.
void join_products(Graph& graph, const std::vector<ValueId>& kept, const NodeChoice& better);

// Lets products read the rows of a gather from their table if all readers of the rows are products, which become
// GatherGemms, or coalesces of products, `better` returns true for each of the new nodes, and the rows are not in
// `kept`. Run after differentiate, before attach_epilogues.
void join_gathers(Graph& graph, const std::vector<ValueId>& kept, const NodeChoice& better);

// Lets products read a packed matrix if `bytes_of` returns its bytes; 0: the device reads the matrix itself. A matrix
// that the products of a loop read at all steps is packed before the loop. One that is constant from run to run, such
// as a parameter that is not trained, is packed by one of the first nodes, with Node::once, for all products. constant:
// per value. Returns the values of such nodes, which have to stay. Run after attach_epilogues.
using PackedBytes = std::function<uint64_t(const Node& product)>;
std::vector<ValueId> pack_operands(Graph& graph, const PackedBytes& bytes_of, const std::vector<bool>& constant);

// Fuses a gather and a sum over segments of its rows into one node (an embedding bag) if the sum is the only reader of
// the rows, and these are not in `kept`. Run after fuse.
void join_bags(Graph& graph, const std::vector<ValueId>& kept);

// Fuses neighbouring pointwise nodes on the same grid into one program, and removes nodes and outputs without readers.
// Values in `kept` stay readable.
void fuse(Graph& graph, const std::vector<ValueId>& kept);

}  // namespace tenon::core

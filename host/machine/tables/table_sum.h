// The sums of the gradients of tables, each with the owner of its row. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "host/machine/shards/row_terms.h"
#include "host/machine/shards/shard_tree.h"
#include "host/machine/shards/shard_values.h"
#include "host/machine/tables/messages.h"
#include "host/machine/tables/minibatch_rows.h"
#include "host/machine/tables/table_owners.h"

namespace tenon::host {

using namespace core;

// Adds up the row-sparse gradients of tables over all shards in the order of the tree, as TeamSum those of other
// parameters: what is added is a function of the shards. Each process sends the rows of its own nodes to their owners,
// which add them up.
class TableSum {
 public:
  // A table with a gradient, and the rows of which the gradients have the places as ids.
  struct Source {
    const MachineTable* table;
    const TableRows* rows;
    size_t gradient;  // number in CompiledModel::sparse_gradients
  };
  // Borrows the owners. shards: of all processes.
  TableSum(const TableOwners& owners, size_t shards);
  // Returns the sums of the rows that this process owns, by source, until the next run. own: the nodes that this
  // process has alone, by their first shard. Collective.
  [[nodiscard]] const std::vector<RowTerms>& run(const ShardTree& tree, const std::map<size_t, ShardValues*>& own,
                                                 const std::vector<Source>& sources);

 private:
  using Terms = std::vector<RowTerms>;  // of a node, by source
  // The rows of a gradient with one owner.
  struct Part {
    std::vector<size_t> rows;  // numbers in the gradient
    std::vector<int64_t> ids;  // of the table
  };
  void divide(const std::map<size_t, ShardValues*>& own, const std::vector<Source>& sources);
  void take(const ShardTree& tree, const std::vector<Source>& sources);

  const TableOwners& owners_;
  size_t shards_;
  std::vector<std::vector<Part>> parts_;  // scratch, by node and source, by owner
  Messages messages_;
  std::map<size_t, Terms> terms_;  // by the first shard of the node
};

}  // namespace tenon::host

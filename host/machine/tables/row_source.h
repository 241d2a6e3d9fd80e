// The rows of tables of a machine that computes all shards of its minibatches, and owns no rows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "host/machine/shards/row_terms.h"
#include "host/machine/tables/minibatch_rows.h"
#include "host/machine/tables/table_reads.h"

namespace tenon::host {

using namespace core;

// Where such a machine gets rows from, and where their gradients go.
class RowSource : base::NotCopied {
 public:
  virtual ~RowSource() = default;
  // Fills the values of the rows, by number in CompiledModel::tables.
  virtual void fetch(const std::vector<MachineTable>& tables, std::vector<TableRows>& rows) = 0;
  // Takes the gradient of a backward, by the numbers of the rows in table number `table`, once for each that has one.
  virtual void take(size_t table, RowTerms gradient) = 0;
};

}  // namespace tenon::host

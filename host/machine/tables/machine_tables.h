// The tables of a machine whose rows lie with their owners. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "host/machine/tables/minibatch_rows.h"
#include "host/machine/tables/owned_rows.h"
#include "host/machine/tables/table_owners.h"
#include "host/machine/tables/table_sum.h"

namespace tenon::host {

using namespace core;

// Before a forward it brings the rows that the shards of this process read; after a backward it gives their gradients
// to the owners. Functions are collective.
class MachineTables : base::NotCopied {
 public:
  // Borrows everything. machine: the first one of this process. shards: of all processes.
  MachineTables(Team* team, DeviceMachine& machine, size_t shards, StepGradients& step);

  // Brings the rows that the arrays of the shards of this process have the ids of.
  void fetch(const std::vector<const std::vector<ArrayView>*>& shards);
  // Those of the last fetch, by number in CompiledModel::tables.
  [[nodiscard]] const std::vector<TableRows>& rows() const { return rows_.tables(); }
  // Adds up the gradients of all shards. own: as of TableSum::run.
  void add_up(const ShardTree& tree, const std::map<size_t, ShardValues*>& own);

 private:
  DeviceMachine& machine_;
  TableOwners owners_;
  TableSum sum_;
  MinibatchRows rows_;
  OwnedRows owned_;
};

}  // namespace tenon::host

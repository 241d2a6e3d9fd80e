// The tables of a machine whose rows lie with their owners. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "host/machine/tables/minibatch_rows.h"
#include "host/machine/tables/owned_rows.h"
#include "host/machine/tables/row_source.h"
#include "host/machine/tables/table_owners.h"
#include "host/machine/tables/table_sum.h"

namespace tenon::host {

using namespace core;

// Before a forward it brings the rows that the shards of this process read; after a backward it gives their gradients
// away.
class MachineTables : base::NotCopied {
 public:
  // Borrows the machine: the first one of this process.
  explicit MachineTables(DeviceMachine& machine) : machine_(machine) {}
  virtual ~MachineTables() = default;

  // Brings the rows that the arrays of the shards of this process have the ids of.
  void fetch(const std::vector<const std::vector<ArrayView>*>& shards);
  // Those of the last fetch, by number in CompiledModel::tables.
  [[nodiscard]] const std::vector<TableRows>& rows() const { return rows_.tables(); }
  // Adds up the gradients of all shards. own: as of TableSum::run.
  virtual void add_up(const ShardTree& tree, const std::map<size_t, ShardValues*>& own) = 0;

 protected:
  [[nodiscard]] const CompiledModel& model() const { return machine_.model(); }
  // The tables with gradients, and the rows of the last fetch.
  [[nodiscard]] std::vector<TableSum::Source> sources() const;
  virtual void bring(std::vector<TableRows>& rows) = 0;

 private:
  DeviceMachine& machine_;
  MinibatchRows rows_;
};

// Rows lie with the processes of a team, which compute the shards together. Functions are collective.
class TeamTables final : public MachineTables {
 public:
  // Borrows everything. shards: of all processes.
  TeamTables(Team* team, DeviceMachine& machine, size_t shards, StepGradients& step);

  void add_up(const ShardTree& tree, const std::map<size_t, ShardValues*>& own) override;
  // Takes gradients that nobody here has computed. table: number in CompiledModel::tables.
  void take(size_t table, const RowTerms& gradient) { owned_.take(model().tables[table], gradient); }

 protected:
  void bring(std::vector<TableRows>& rows) override { owners_.fetch(model().tables, rows); }

 private:
  TableOwners owners_;
  TableSum sum_;
  OwnedRows owned_;
};

// Rows come from elsewhere, and this process computes all shards.
class SourcedTables final : public MachineTables {
 public:
  // Borrows both.
  SourcedTables(DeviceMachine& machine, RowSource& source) : MachineTables(machine), source_(source) {}

  void add_up(const ShardTree& tree, const std::map<size_t, ShardValues*>& own) override;

 protected:
  void bring(std::vector<TableRows>& rows) override { source_.fetch(model().tables, rows); }

 private:
  RowSource& source_;
};

}  // namespace tenon::host

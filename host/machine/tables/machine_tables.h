// The tables of a machine whose rows lie with their owners. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "core/shard_range.h"
#include "host/machine/tables/owned_rows.h"
#include "host/machine/tables/row_source.h"
#include "host/machine/tables/table_fetch.h"
#include "host/machine/tables/table_owners.h"
#include "host/machine/tables/table_sum.h"

namespace tenon::host {

using namespace core;

// Before a forward it brings the rows that the shards of this process read; after a backward it gives their gradients
// away.
class MachineTables : base::NotCopied {
 public:
  // Borrows the machine: the first one of this process. shards: of all processes; own: those of this one.
  MachineTables(DeviceMachine& machine, size_t shards, ShardRange own)
      : machine_(machine), shards_(shards), own_(own) {}
  virtual ~MachineTables() = default;

  // Samples of a minibatch, at least those of the shards of this process.
  struct Samples {
    const std::vector<ArrayView>& arrays;
    int64_t first;  // the number in the minibatch of the first sample of the arrays
    int64_t count;  // of the minibatch
  };
  // Returns in `ids` the rows that the shards of this process read. Not collective. Throws TN_BAD_DATA for an id beyond
  // its table.
  void collect(const Samples& samples, TableIds& ids) const;
  // Brings the rows of the minibatch whose forward begins.
  virtual void fetch(const Samples& samples) = 0;
  // Those of the last fetch, by number in CompiledModel::tables.
  [[nodiscard]] virtual const std::vector<TableRows>& rows() const = 0;
  // Adds up the gradients of all shards. own: as of TableSum::run.
  virtual void add_up(const ShardTree& tree, const std::map<size_t, ShardValues*>& own) = 0;

 protected:
  [[nodiscard]] const CompiledModel& model() const { return machine_.model(); }
  // The tables with gradients, and the rows of the last fetch.
  [[nodiscard]] std::vector<TableSum::Source> sources() const;
  [[nodiscard]] TableIds& scratch() { return ids_; }

 private:
  DeviceMachine& machine_;
  size_t shards_;
  ShardRange own_;
  TableIds ids_;
};

// Rows lie with the processes of a team, which compute the shards together. Functions but collect() are collective.
class TeamTables final : public MachineTables {
 public:
  // Borrows everything. shards, own: as of MachineTables.
  TeamTables(Team* team, DeviceMachine& machine, size_t shards, ShardRange own, StepGradients& step);

  // Asks for the rows of a minibatch before the forward of the one before it, as TableFetch::ask.
  void ask(TableIds& ids) { fetch_.ask(ids); }
  // As TableFetch::recall.
  void recall() { fetch_.recall(); }
  // Asks for the rows first if that was not done.
  void fetch(const Samples& samples) override;
  [[nodiscard]] const std::vector<TableRows>& rows() const override { return fetch_.rows(); }
  void add_up(const ShardTree& tree, const std::map<size_t, ShardValues*>& own) override;
  // Takes gradients that nobody here has computed. table: number in CompiledModel::tables.
  void take(size_t table, const RowTerms& gradient) { owned_.take(model().tables[table], gradient); }

 private:
  TableOwners owners_;
  TableFetch fetch_;
  TableSum sum_;
  OwnedRows owned_;
};

// Rows come from elsewhere, and this process computes all shards.
class SourcedTables final : public MachineTables {
 public:
  // Borrows both.
  SourcedTables(DeviceMachine& machine, size_t shards, RowSource& source)
      : MachineTables(machine, shards, {0, static_cast<int64_t>(shards)}), source_(source) {}

  void fetch(const Samples& samples) override;
  [[nodiscard]] const std::vector<TableRows>& rows() const override { return rows_; }
  void add_up(const ShardTree& tree, const std::map<size_t, ShardValues*>& own) override;

 private:
  RowSource& source_;
  std::vector<TableRows> rows_;
};

}  // namespace tenon::host

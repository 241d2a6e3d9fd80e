// The processes that own the rows of tables. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/parameter_set.h"
#include "core/table_rows.h"
#include "host/comm/team.h"
#include "host/machine/tables/table_reads.h"

namespace tenon::host {

using namespace core;

// Returns how many processes own rows of tables: the servers of a team, its last processes, or, without any, all. team:
// null: this process is alone.
[[nodiscard]] int64_t owners_of(const Team* team);
// Returns the blocks of rows that a process owns: those of blocks_of(owners, o). A trainer beside servers owns none.
[[nodiscard]] TableBlocks owned_blocks(const Team* team, int64_t process);

// Checks a row that another process names: throws TN_BAD_DATA unless this process, which has the set, owns it. does:
// what the process does with the row, such as "asks for".
void require_owned(const ParameterSet& set, const MachineTable& table, int64_t row, int64_t process,
                   std::string_view does);

class TableOwners {
 public:
  // Borrows both. set: its owned() has the rows of this process. team: null: this process owns all. Throws TN_INVALID
  // naming a table if the set was made for another team.
  TableOwners(Team* team, const ParameterSet& set);

  [[nodiscard]] Team* team() const { return team_; }
  // Of all processes of the team, and of those that compute shards.
  [[nodiscard]] int64_t processes() const { return team_ == nullptr ? 1 : team_->processes(); }
  [[nodiscard]] int64_t trainers() const { return team_ == nullptr ? 1 : team_->trainers(); }
  // The process that owns a row.
  [[nodiscard]] int64_t owner(int64_t row) const { return first_ + owner_of(processes() - first_, row); }
  // The blocks of this process.
  [[nodiscard]] const TableBlocks& blocks() const { return *set_.tables().blocks; }

  // As the function above.
  void require_owned(const MachineTable& table, int64_t row, int64_t process, std::string_view does) const {
    host::require_owned(set_, table, row, process, does);
  }
  // The rows that this process owns.
  [[nodiscard]] const ParameterSet& owned() const { return *set_.owned(); }
  // Returns the values of all rows of [first, first + count) that this process owns.
  [[nodiscard]] std::span<const float> values(const ParameterEntry& owned, int64_t first, int64_t count) const;

 private:
  Team* team_;
  const ParameterSet& set_;
  int64_t first_;  // owner
};

}  // namespace tenon::host

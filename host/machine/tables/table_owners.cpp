// SPDX-License-Identifier: Apache-2.0
#include "host/machine/tables/table_owners.h"

#include "core/error.h"

namespace tenon::host {

namespace {

// The first process that owns rows.
int64_t first_owner(const Team* team) { return team == nullptr ? 0 : team->processes() - owners_of(team); }

}  // namespace

int64_t owners_of(const Team* team) {
  if (team == nullptr) return 1;
  return team->servers() == 0 ? team->processes() : team->servers();
}

TableBlocks owned_blocks(const Team* team, int64_t process) {
  if (team == nullptr) return {};
  const int64_t first = first_owner(team);
  if (process < first) return {0, 0};
  return blocks_of(owners_of(team), process - first);
}

void require_owned(const ParameterSet& set, const MachineTable& table, int64_t row, int64_t process,
                   std::string_view does) {
  if (row >= 0 && row < table.height && set.tables().blocks->contains(row)) return;
  fail(TN_BAD_DATA, "process ", process, " ", does, " row ", row, " of table \"",
       set.owned()->entries()[table.owned].name, "\" of ", table.height, " rows, which this process does not own");
}

TableOwners::TableOwners(Team* team, const ParameterSet& set) : team_(team), set_(set), first_(first_owner(team)) {
  if (blocks() == owned_blocks(team, team == nullptr ? 0 : team->rank())) return;
  const std::string& table = set.tables().names.front();
  if (team == nullptr)
    fail_parameter(
        TN_UNSUPPORTED, table, "table \"", table, "\": its rows lie with the processes of a team, and this machine ",
        "is of one process alone; use the parameters in a training of the team, or save the model, in all of ",
        "them, and load the file");
  fail_parameter(TN_INVALID, table, "table \"", table,
                 "\": the parameters were made for another team, whose processes own ",
                 "its rows; make them by tn_team_parameters for this one, or without tables");
}

std::span<const float> TableOwners::values(const ParameterEntry& owned, int64_t first, int64_t count) const {
  if (owned.count == 0) return {};
  const auto width = static_cast<int64_t>(owned.count) / owned.shape[0];
  const int64_t begin = blocks().rows(first), end = blocks().rows(first + count);
  return {set_.owned()->values(owned) + begin * width, static_cast<size_t>((end - begin) * width)};
}

}  // namespace tenon::host

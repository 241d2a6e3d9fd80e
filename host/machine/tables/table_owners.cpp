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

TableOwners::TableOwners(Team* team, const ParameterSet& set)
    : team_(team), set_(set), first_(first_owner(team)), requests_(team), answers_(team) {
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

// Collects for each owner the ids of its rows, of one table after another.
void TableOwners::ask(const std::vector<TableRows>& rows) {
  asked_.resize(static_cast<size_t>(processes()));
  for (std::vector<Places>& of_tables : asked_) {
    of_tables.resize(rows.size());
    for (Places& places : of_tables) places.clear();
  }
  for (size_t table = 0; table < rows.size(); ++table)
    for (size_t i = 0; i < rows[table].ids.size(); ++i)
      asked_[static_cast<size_t>(owner(rows[table].ids[i]))][table].push_back(i);
  for (int64_t process = 0; process < processes(); ++process) {
    const std::vector<Places>& asked = asked_[static_cast<size_t>(process)];
    uint64_t numbers = asked.size();
    for (const Places& places : asked) numbers += places.size();
    MessageWriter writer(requests_.to(process), numbers * sizeof(int64_t));
    for (size_t table = 0; table < rows.size(); ++table) {
      const auto count = static_cast<int64_t>(asked[table].size());
      writer.write(std::span(&count, 1));
      ids_.clear();
      for (const size_t place : asked[table]) ids_.push_back(rows[table].ids[place]);
      writer.write(std::span<const int64_t>(ids_));
    }
  }
}

// Collects the values of the rows that a process asks for, in their order.
void TableOwners::answer(int64_t process, const std::vector<MachineTable>& tables) {
  const auto each_table = [&](const auto& work) {
    MessageReader reader(requests_.from(process), process);
    for (const MachineTable& table : tables) {
      reader.read(ids_, reader.length(set_.owned()->entries()[table.owned].shape[0]));
      work(table);
    }
  };
  uint64_t bytes = 0;
  each_table([&](const MachineTable& table) {
    for (const int64_t id : ids_)
      if (id < 0 || id >= table.height || !blocks().contains(id))
        fail(TN_BAD_DATA, "process ", process, " asks for row ", id, " of table \"",
             set_.owned()->entries()[table.owned].name, "\" of ", table.height,
             " rows, which this process does not own");
    bytes += ids_.size() * static_cast<uint64_t>(table.width) * sizeof(float);
  });
  MessageWriter writer(answers_.to(process), bytes);
  each_table([&](const MachineTable& table) {
    for (const int64_t id : ids_)
      writer.write(std::span(set_.owned()->row(table.owned, blocks().place(id)), static_cast<size_t>(table.width)));
  });
}

void TableOwners::fetch(const std::vector<MachineTable>& tables, std::vector<TableRows>& rows) {
  uint64_t most = 0;  // bytes of a message
  for (const MachineTable& table : tables) most += (static_cast<uint64_t>(table.height) + 1) * sizeof(int64_t);
  ask(rows);
  requests_.exchange(most);
  for (int64_t process = 0; process < processes(); ++process) answer(process, tables);
  std::vector<uint64_t> coming(static_cast<size_t>(processes()), 0);
  for (size_t process = 0; process < coming.size(); ++process)
    for (size_t i = 0; i < tables.size(); ++i)
      coming[process] += asked_[process][i].size() * static_cast<uint64_t>(tables[i].width) * sizeof(float);
  answers_.exchange(coming);
  for (size_t i = 0; i < tables.size(); ++i)
    rows[i].values.resize(rows[i].ids.size() * static_cast<size_t>(tables[i].width));
  for (int64_t process = 0; process < processes(); ++process) {
    MessageReader reader(answers_.from(process), process);
    for (size_t i = 0; i < tables.size(); ++i) {
      const auto width = static_cast<size_t>(tables[i].width);
      for (const size_t place : asked_[static_cast<size_t>(process)][i])
        std::memcpy(rows[i].values.data() + place * width, reader.bytes(width * sizeof(float)), width * sizeof(float));
    }
  }
}

std::span<const float> TableOwners::values(const ParameterEntry& owned, int64_t first, int64_t count) const {
  if (owned.count == 0) return {};
  const auto width = static_cast<int64_t>(owned.count) / owned.shape[0];
  const int64_t begin = blocks().rows(first), end = blocks().rows(first + count);
  return {set_.owned()->values(owned) + begin * width, static_cast<size_t>((end - begin) * width)};
}

}  // namespace tenon::host

// SPDX-License-Identifier: Apache-2.0
#include "host/machine/tables/table_owners.h"

#include "core/error.h"

namespace tenon::host {

namespace {

// The first process that owns rows.
int64_t first_owner(const Team* team) { return team == nullptr || team->servers() == 0 ? 0 : team->trainers(); }

}  // namespace

TableBlocks owned_blocks(const Team* team, int64_t process) {
  if (team == nullptr) return {};
  const int64_t first = first_owner(team);
  if (process < first) return {0, 0};
  return blocks_of(team->processes() - first, process - first);
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

// Collects for each owner the ids of its rows, of one table after another.
Message TableOwners::requests_to(int64_t process, const std::vector<TableRows>& rows) const {
  Message requests;
  std::vector<int64_t> ids;
  for (const TableRows& table : rows) {
    ids.clear();
    for (const int64_t id : table.ids)
      if (owner(id) == process) ids.push_back(id);
    append_list(requests, std::span<const int64_t>(ids));
  }
  return requests;
}

// Returns the values of the rows that a process asks for, in their order.
Message TableOwners::answer(const Message& requests, int64_t process, const std::vector<MachineTable>& tables) const {
  Message values;
  MessageReader reader(requests, process);
  for (const MachineTable& table : tables) {
    const ParameterEntry& owned = set_.owned()->entries()[table.owned];
    for (const int64_t id : reader.list<int64_t>(owned.shape[0])) {
      if (id < 0 || id >= table.height || !blocks().contains(id))
        fail(TN_BAD_DATA, "process ", process, " asks for row ", id, " of table \"", owned.name, "\" of ", table.height,
             " rows, which this process does not own");
      const float* const row = set_.owned()->row(table.owned, blocks().place(id));
      append(values, std::span(row, static_cast<size_t>(table.width)));
    }
  }
  return values;
}

void TableOwners::fetch(const std::vector<MachineTable>& tables, std::vector<TableRows>& rows) const {
  uint64_t most_ids = 0, most_values = 0;  // bytes of a message
  for (const MachineTable& table : tables) {
    most_ids += (static_cast<uint64_t>(table.height) + 1) * sizeof(int64_t);
    most_values += static_cast<uint64_t>(table.height * table.width) * sizeof(float);
  }
  std::vector<Message> messages;
  for (int64_t process = 0; process < processes(); ++process) messages.push_back(requests_to(process, rows));
  messages = all_to_all(team_, std::move(messages), most_ids);
  for (int64_t process = 0; process < processes(); ++process) {
    Message& message = messages[static_cast<size_t>(process)];
    message = answer(message, process, tables);
  }
  messages = all_to_all(team_, std::move(messages), most_values);
  std::vector<MessageReader> answers;  // by owner
  for (int64_t process = 0; process < processes(); ++process)
    answers.emplace_back(messages[static_cast<size_t>(process)], process);
  for (size_t i = 0; i < tables.size(); ++i) {
    const auto width = static_cast<size_t>(tables[i].width);
    rows[i].values.resize(rows[i].ids.size() * width);
    for (size_t k = 0; k < rows[i].ids.size(); ++k)
      answers[static_cast<size_t>(owner(rows[i].ids[k]))].read(std::span(rows[i].values.data() + k * width, width));
  }
}

std::span<const float> TableOwners::values(const ParameterEntry& owned, int64_t first, int64_t count) const {
  if (owned.count == 0) return {};
  const auto width = static_cast<int64_t>(owned.count) / owned.shape[0];
  const int64_t begin = blocks().rows(first), end = blocks().rows(first + count);
  return {set_.owned()->values(owned) + begin * width, static_cast<size_t>((end - begin) * width)};
}

}  // namespace tenon::host

// SPDX-License-Identifier: Apache-2.0
#include "host/machine/tables/table_sum.h"

#include <algorithm>

#include "core/floating_point_mode.h"

namespace tenon::host {

namespace {

uint64_t row_bytes(const TableSum::Source& source) {
  return static_cast<uint64_t>(source.table->width) * sizeof(float);
}

}  // namespace

TableSum::TableSum(const TableOwners& owners, size_t shards)
    : owners_(owners), shards_(shards), messages_(owners.team()) {}

// Fills the messages to the owners: of each node, of each table, the ids of its rows and their values.
void TableSum::divide(const std::map<size_t, ShardValues*>& own, const std::vector<Source>& sources) {
  const auto processes = static_cast<size_t>(owners_.processes());
  std::vector<uint64_t> bytes(processes);  // of the messages
  parts_.resize(own.size() * sources.size());
  auto parts = parts_.begin();
  for (const auto& node : own)
    for (const Source& source : sources) {
      std::vector<Part>& by_owner = *parts++;
      by_owner.resize(processes);
      for (Part& part : by_owner) part.rows.clear(), part.ids.clear();
      const SparseGradientView view = node.second->sparse_gradient(source.gradient).view();
      const auto* const places = static_cast<const int64_t*>(view.ids.data);
      for (int64_t i = 0; i < view.ids.shape[0]; ++i) {
        const int64_t id = source.rows->ids[static_cast<size_t>(places[i])];
        Part& part = by_owner[static_cast<size_t>(owners_.owner(id))];
        part.rows.push_back(static_cast<size_t>(i));
        part.ids.push_back(id);
      }
      for (size_t process = 0; process < processes; ++process)
        bytes[process] += sizeof(int64_t) + by_owner[process].ids.size() * (sizeof(int64_t) + row_bytes(source));
    }
  for (size_t process = 0; process < processes; ++process) {
    MessageWriter writer(messages_.to(static_cast<int64_t>(process)), bytes[process]);
    auto by_owner = parts_.begin();
    for (const auto& node : own)
      for (const Source& source : sources) {
        const Part& part = (*by_owner++)[process];
        const auto count = static_cast<int64_t>(part.ids.size());
        writer.write(std::span(&count, 1));
        writer.write(std::span<const int64_t>(part.ids));
        const SparseGradientView view = node.second->sparse_gradient(source.gradient).view();
        const auto* const values = static_cast<const std::byte*>(view.values.data);
        for (const size_t row : part.rows) writer.write(std::span(values + row * row_bytes(source), row_bytes(source)));
      }
  }
}

// Takes the rows that this process owns from the messages of all.
void TableSum::take(const ShardTree& tree, const std::vector<Source>& sources) {
  std::vector<MessageReader> readers;
  for (int64_t process = 0; process < owners_.processes(); ++process)
    readers.emplace_back(messages_.from(process), process);
  const std::vector<TeamNode> nodes = nodes_of_team(tree, shards_, owners_.trainers());
  std::erase_if(terms_, [&](const auto& former) {
    return std::none_of(nodes.begin(), nodes.end(), [&](const TeamNode& node) { return node.first == former.first; });
  });
  for (const TeamNode& node : nodes) {
    Terms& terms = terms_[node.first];
    terms.resize(sources.size());
    MessageReader& reader = readers[static_cast<size_t>(node.process)];
    for (size_t i = 0; i < sources.size(); ++i) {
      const MachineTable& table = *sources[i].table;
      RowTerms& rows = terms[i];
      reader.read(rows.ids, reader.length(owners_.blocks().rows(table.height)));
      for (const int64_t id : rows.ids) owners_.require_owned(table, id, node.process, "has a gradient of");
      const uint64_t bytes = rows.ids.size() * row_bytes(sources[i]);
      rows.values = {reader.bytes(bytes), bytes};
    }
  }
}

const std::vector<RowTerms>& TableSum::run(const ShardTree& tree, const std::map<size_t, ShardValues*>& own,
                                           const std::vector<Source>& sources) {
  const FloatingPointMode mode;
  uint64_t most = 0;  // bytes of a message
  for (const Source& source : sources)
    most += tree.count() *
            (sizeof(int64_t) + static_cast<uint64_t>(source.table->height) * (sizeof(int64_t) + row_bytes(source)));
  divide(own, sources);
  messages_.exchange(most);
  take(tree, sources);
  for (const std::vector<ShardJoin>& level : tree.levels())
    for (const ShardJoin& join : level) {
      if (!terms_.contains(join.from)) continue;  // one process has added up both
      for (size_t i = 0; i < sources.size(); ++i)
        add_rows(TN_F32, terms_[join.to][i], terms_[join.from][i], row_bytes(sources[i]));
    }
  return terms_.at(0);
}

}  // namespace tenon::host

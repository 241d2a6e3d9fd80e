// SPDX-License-Identifier: Apache-2.0
#include "host/machine/tables/table_sum.h"

#include "core/error.h"
#include "core/floating_point_mode.h"

namespace tenon::host {

namespace {

uint64_t row_bytes(const TableSum::Source& source) {
  return static_cast<uint64_t>(source.table->width) * sizeof(float);
}

}  // namespace

// Returns a message for each owner: of each node, of each table, the ids of its rows and their values.
std::vector<Message> TableSum::divided(const std::map<size_t, ShardValues*>& own,
                                       const std::vector<Source>& sources) const {
  std::vector<Message> messages(static_cast<size_t>(owners_.processes()));
  for (const auto& node : own)
    for (const Source& source : sources) {
      const SparseGradientView view = node.second->sparse_gradient(source.gradient).view();
      const auto* const places = static_cast<const int64_t*>(view.ids.data);
      const auto* const values = static_cast<const std::byte*>(view.values.data);
      std::vector<RowTerms> parts(messages.size());
      for (int64_t i = 0; i < view.ids.shape[0]; ++i) {
        const int64_t id = source.rows->ids[static_cast<size_t>(places[i])];
        RowTerms& part = parts[static_cast<size_t>(owners_.owner(id))];
        const std::byte* const row = values + static_cast<uint64_t>(i) * row_bytes(source);
        part.ids.push_back(id);
        part.values.insert(part.values.end(), row, row + row_bytes(source));
      }
      for (size_t owner = 0; owner < parts.size(); ++owner) {
        append_list(messages[owner], std::span<const int64_t>(parts[owner].ids));
        append(messages[owner], std::span<const std::byte>(parts[owner].values));
      }
    }
  return messages;
}

std::map<size_t, TableSum::Terms> TableSum::terms_of(const ShardTree& tree, const std::vector<Message>& messages,
                                                     const std::vector<Source>& sources) const {
  std::map<size_t, Terms> terms;  // by the first shard of the node
  std::vector<MessageReader> readers;
  for (int64_t process = 0; process < owners_.processes(); ++process)
    readers.emplace_back(messages[static_cast<size_t>(process)], process);
  for (const TeamNode& node : nodes_of_team(tree, shards_, owners_.trainers()))
    for (const Source& source : sources) {
      MessageReader& reader = readers[static_cast<size_t>(node.process)];
      RowTerms& rows = terms[node.first].emplace_back();
      rows.ids = reader.list<int64_t>(owners_.blocks().rows(source.table->height));
      for (const int64_t id : rows.ids)
        if (id < 0 || id >= source.table->height || !owners_.blocks().contains(id))
          fail(TN_BAD_DATA, "process ", node.process, " has a gradient of row ", id, " of a table of ",
               source.table->height, " rows, which this process does not own");
      rows.values.resize(rows.ids.size() * row_bytes(source));
      reader.read(std::span(rows.values));
    }
  return terms;
}

std::vector<RowTerms> TableSum::run(const ShardTree& tree, const std::map<size_t, ShardValues*>& own,
                                    const std::vector<Source>& sources) const {
  if (sources.empty()) return {};
  const FloatingPointMode mode;
  uint64_t most = 0;  // bytes of a message
  for (const Source& source : sources)
    most += tree.count() *
            (sizeof(int64_t) + static_cast<uint64_t>(source.table->height) * (sizeof(int64_t) + row_bytes(source)));
  std::map<size_t, Terms> terms = terms_of(tree, all_to_all(owners_.team(), divided(own, sources), most), sources);
  for (const std::vector<ShardJoin>& level : tree.levels())
    for (const ShardJoin& join : level) {
      if (!terms.contains(join.from)) continue;  // one process has added up both
      for (size_t i = 0; i < sources.size(); ++i)
        add_rows(TN_F32, terms[join.to][i], terms[join.from][i], row_bytes(sources[i]));
    }
  return std::move(terms.at(0));
}

}  // namespace tenon::host

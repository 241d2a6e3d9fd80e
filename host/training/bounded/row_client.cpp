// SPDX-License-Identifier: Apache-2.0
#include "host/training/bounded/row_client.h"

#include <cstring>

#include "core/table_rows.h"

namespace tenon::host {

void RowClient::fetch(const std::vector<MachineTable>& tables, std::vector<TableRows>& rows) {
  std::vector<Asked> servers(static_cast<size_t>(this->servers()));
  for (Asked& asked : servers) asked.places.resize(tables.size());
  for (size_t table = 0; table < tables.size(); ++table) {
    for (size_t place = 0; place < rows[table].ids.size(); ++place)
      servers[static_cast<size_t>(owner_of(this->servers(), rows[table].ids[place]))].places[table].push_back(place);
    rows[table].values.resize(rows[table].ids.size() * static_cast<size_t>(tables[table].width));
  }
  std::vector<World::Outgoing> outgoing;
  std::vector<World::Incoming> incoming;
  for (size_t server = 0; server < servers.size(); ++server) {
    Asked& asked = servers[server];
    uint64_t ids = 0, values = 0;
    for (size_t table = 0; table < tables.size(); ++table) {
      ids += (1 + asked.places[table].size()) * sizeof(int64_t);
      values += asked.places[table].size() * static_cast<size_t>(tables[table].width) * sizeof(float);
    }
    MessageWriter writer(asked.ids, ids);
    for (size_t table = 0; table < tables.size(); ++table) {
      const auto count = static_cast<int64_t>(asked.places[table].size());
      writer.write(std::span(&count, 1));
      for (const size_t place : asked.places[table]) writer.write(std::span<const int64_t>(&rows[table].ids[place], 1));
    }
    asked.values.resize(values);
    asked.request = {.kind = BoundedRequest::kRows, .serial = serial_, .bytes = ids};
    const int64_t rank = rank_of(static_cast<int64_t>(server));
    outgoing.push_back({rank, &asked.request, sizeof asked.request});
    outgoing.push_back({rank, asked.ids.data(), asked.ids.size()});
    incoming.push_back({rank, asked.values.data(), asked.values.size()});
  }
  world_.begin(outgoing, incoming, kRequestChannel).wait();
  for (Asked& asked : servers) {
    const std::byte* from = asked.values.data();
    for (size_t table = 0; table < tables.size(); ++table) {
      const auto width = static_cast<size_t>(tables[table].width);
      for (const size_t place : asked.places[table]) {
        std::memcpy(rows[table].values.data() + place * width, from, width * sizeof(float));
        from += width * sizeof(float);
      }
    }
  }
}

Message RowClient::gradients_of(int64_t server, uint64_t extra) const {
  std::vector<std::vector<size_t>> places(gradients_.size());
  uint64_t bytes = 0;
  size_t number = 0;
  for (const auto& [table, gradient] : gradients_) {
    for (size_t i = 0; i < gradient.ids.size(); ++i)
      if (owner_of(servers(), gradient.ids[i]) == server) places[number].push_back(i);
    const uint64_t width = gradient.ids.empty() ? 0 : gradient.values.size() / gradient.ids.size();
    bytes += sizeof(int64_t) + places[number].size() * (sizeof(int64_t) + width);
    ++number;
  }
  Message message;
  MessageWriter writer(message, bytes + extra);
  number = 0;
  for (const auto& [table, gradient] : gradients_) {
    const std::vector<size_t>& rows = places[number++];
    const auto count = static_cast<int64_t>(rows.size());
    const uint64_t width = gradient.ids.empty() ? 0 : gradient.values.size() / gradient.ids.size();
    writer.write(std::span(&count, 1));
    for (const size_t row : rows) writer.write(std::span(&gradient.ids[row], 1));
    for (const size_t row : rows) writer.write(std::span(gradient.values.data() + row * width, width));
  }
  return message;
}

}  // namespace tenon::host

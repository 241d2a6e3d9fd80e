// SPDX-License-Identifier: Apache-2.0
#include "host/machine/tables/all_to_all.h"

namespace tenon::host {

std::vector<Message> all_to_all(Team* team, std::vector<Message> messages, uint64_t most) {
  if (team == nullptr) return messages;
  const auto own = static_cast<size_t>(team->rank());
  std::vector<uint64_t> sizes(messages.size()), coming(messages.size());
  std::vector<Message> received(messages.size());
  std::vector<Team::Outgoing> outgoing;
  std::vector<Team::Incoming> incoming;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (i == own) continue;
    sizes[i] = messages[i].size();
    outgoing.push_back({static_cast<int64_t>(i), &sizes[i], sizeof sizes[i]});
    incoming.push_back({static_cast<int64_t>(i), &coming[i], sizeof coming[i]});
  }
  team->exchange(outgoing, incoming);
  outgoing.clear();
  incoming.clear();
  for (size_t i = 0; i < messages.size(); ++i) {
    if (i == own) continue;
    if (coming[i] > most) fail(TN_BAD_DATA, "process ", i, " announces ", coming[i], " bytes; expected at most ", most);
    received[i].resize(coming[i]);
    outgoing.push_back({static_cast<int64_t>(i), messages[i].data(), messages[i].size()});
    incoming.push_back({static_cast<int64_t>(i), received[i].data(), received[i].size()});
  }
  team->exchange(outgoing, incoming);
  received[own] = std::move(messages[own]);
  return received;
}

}  // namespace tenon::host

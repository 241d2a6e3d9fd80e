// SPDX-License-Identifier: Apache-2.0
#include "host/machine/tables/messages.h"

namespace tenon::host {

Messages::Messages(Team* team)
    : team_(team),
      outgoing_(team == nullptr ? 1 : static_cast<size_t>(team->processes())),
      incoming_(outgoing_.size()) {}

void Messages::exchange(uint64_t most) {
  if (team_ == nullptr) return;
  const auto own = static_cast<size_t>(team_->rank());
  std::vector<uint64_t> sizes(outgoing_.size()), coming(outgoing_.size());
  std::vector<Team::Outgoing> outgoing;
  std::vector<Team::Incoming> incoming;
  for (size_t i = 0; i < outgoing_.size(); ++i) {
    if (i == own) continue;
    sizes[i] = outgoing_[i].size();
    outgoing.push_back({static_cast<int64_t>(i), &sizes[i], sizeof sizes[i]});
    incoming.push_back({static_cast<int64_t>(i), &coming[i], sizeof coming[i]});
  }
  team_->exchange(outgoing, incoming);
  for (size_t i = 0; i < coming.size(); ++i)
    if (coming[i] > most) fail(TN_BAD_DATA, "process ", i, " announces ", coming[i], " bytes; expected at most ", most);
  exchange(coming);
}

void Messages::exchange(const std::vector<uint64_t>& coming) {
  begin(coming, 0);
  wait();
}

void Messages::begin(const std::vector<uint64_t>& coming, uint32_t channel) {
  if (team_ == nullptr) return;
  std::vector<Team::Outgoing> outgoing;
  std::vector<Team::Incoming> incoming;
  for (size_t i = 0; i < outgoing_.size(); ++i) {
    if (static_cast<int64_t>(i) == team_->rank()) continue;
    incoming_[i].resize(coming[i]);
    outgoing.push_back({static_cast<int64_t>(i), outgoing_[i].data(), outgoing_[i].size()});
    incoming.push_back({static_cast<int64_t>(i), incoming_[i].data(), incoming_[i].size()});
  }
  transfers_ = team_->begin(outgoing, incoming, channel);
}

const Message& Messages::from(int64_t process) const {
  const bool is_own = team_ == nullptr || process == team_->rank();
  return (is_own ? outgoing_ : incoming_)[static_cast<size_t>(process)];
}

}  // namespace tenon::host

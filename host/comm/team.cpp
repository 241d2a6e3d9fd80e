// SPDX-License-Identifier: Apache-2.0
#include "host/comm/team.h"

#include <algorithm>
#include <numeric>

namespace tenon::host {

Team::Team(std::shared_ptr<World> world)
    : world_(std::move(world)), ranks_(static_cast<size_t>(world_->ranks())), rank_(world_->rank()) {
  std::iota(ranks_.begin(), ranks_.end(), int64_t{0});
}

std::unique_ptr<Team> Team::of_first_and_servers() const {
  std::unique_ptr<Team> team(new Team(world_));
  std::vector<int64_t> others(static_cast<size_t>(world_->ranks() - servers() - 1));
  std::iota(others.begin(), others.end(), int64_t{1});
  team->leave_out(others);
  return team;
}

void Team::leave_out(std::span<const int64_t> ranks) {
  ranks_.resize(static_cast<size_t>(world_->ranks()));
  std::iota(ranks_.begin(), ranks_.end(), int64_t{0});
  std::erase_if(ranks_, [&](int64_t rank) { return std::find(ranks.begin(), ranks.end(), rank) != ranks.end(); });
  rank_ = std::lower_bound(ranks_.begin(), ranks_.end(), world_->rank()) - ranks_.begin();
}

Team::Transfers Team::begin(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming, uint32_t channel) {
  if (processes() == world_->ranks()) return world_->begin(outgoing, incoming, channel);
  std::vector<Outgoing> to(outgoing.begin(), outgoing.end());
  for (Outgoing& each : to) each.to = rank_of(each.to);
  std::vector<Incoming> from(incoming.begin(), incoming.end());
  for (Incoming& each : from) each.from = rank_of(each.from);
  return world_->begin(to, from, channel);
}

void Team::exchange(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming) {
  begin(outgoing, incoming, 0).wait();
}

Team::Transfers Team::begin_gather(std::span<std::byte> all) {
  const uint64_t bytes = all.size() / static_cast<uint64_t>(processes());
  const auto part = [&](int64_t process) { return all.data() + static_cast<uint64_t>(process) * bytes; };
  std::vector<Outgoing> outgoing;
  std::vector<Incoming> incoming;
  for (int64_t other = 0; other < processes(); ++other) {
    if (other == rank()) continue;
    outgoing.push_back({other, part(rank()), bytes});
    incoming.push_back({other, part(other), bytes});
  }
  return begin(outgoing, incoming, 0);
}

void Team::gather(std::span<std::byte> all) { begin_gather(all).wait(); }

void Team::broadcast(std::span<std::byte> bytes, int64_t from) {
  if (rank() != from) {
    const Incoming incoming{from, bytes.data(), bytes.size()};
    return exchange({}, {&incoming, 1});
  }
  std::vector<int64_t> others = ranks_;
  others.erase(others.begin() + from);
  world_->send_copy(bytes, others);
}

}  // namespace tenon::host

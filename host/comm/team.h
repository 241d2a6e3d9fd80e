// The processes of a training, and what they tell each other. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "host/comm/world.h"

namespace tenon::host {

// The team that this process is in: all processes of a world, or some of them. The functions are collective: all
// processes of the team call the same ones in the same order, from one thread at a time; transfers that were begun go
// on meanwhile. They throw as those of World.
class Team : base::NotCopied {
 public:
  // Joins a world, as World does.
  Team(const CommType& type, const Values& attributes, const tn_services* services, const JoinOptions& options,
       const std::atomic<bool>* ending = nullptr)
      : Team(std::make_shared<World>(type, attributes, services, options, ending)) {}

  // A process is known by its number in the team.
  [[nodiscard]] int64_t rank() const { return rank_; }
  [[nodiscard]] int64_t processes() const { return static_cast<int64_t>(ranks_.size()); }
  // The last processes, which own the rows of tables and compute no shards; 0: all processes do both.
  [[nodiscard]] int64_t servers() const { return world_->servers(); }
  [[nodiscard]] int64_t trainers() const { return processes() - servers(); }
  [[nodiscard]] World& world() const { return *world_; }
  // The rank in the world of a process.
  [[nodiscard]] int64_t rank_of(int64_t process) const { return ranks_[static_cast<size_t>(process)]; }
  // Returns the team of process 0 and the servers, of which this process is one.
  [[nodiscard]] std::unique_ptr<Team> of_first_and_servers() const;
  // Makes it the team of all processes of the world but these ranks, as all others do. Not collective.
  void leave_out(std::span<const int64_t> ranks);

  // What this process does, for any thread. step: of the training that uses the team, by its number of updates; -1:
  // none does.
  void set_step(int64_t step) noexcept { step_.store(step, std::memory_order_relaxed); }
  [[nodiscard]] int64_t step() const { return step_.load(std::memory_order_relaxed); }

  using Outgoing = World::Outgoing;  // `to` and `from` are processes
  using Incoming = World::Incoming;
  using Transfers = World::Transfers;
  // As World::begin. The channel of the functions below is 0.
  [[nodiscard]] Transfers begin(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming,
                                uint32_t channel);
  static constexpr uint32_t kMostChannel = World::kMostChannel;
  // Returns when all bytes have arrived and been sent.
  void exchange(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming);
  // Gives all processes the bytes of each: `all` has as many for each process, and those of this one at its place.
  void gather(std::span<std::byte> all);
  [[nodiscard]] Transfers begin_gather(std::span<std::byte> all);
  // Gives the bytes of a process to the others, for which it does not wait if they are few.
  void broadcast(std::span<std::byte> bytes, int64_t from = 0);

 private:
  explicit Team(std::shared_ptr<World> world);

  std::shared_ptr<World> world_;
  std::vector<int64_t> ranks_;  // in the world, by process; ascending
  int64_t rank_;
  std::atomic<int64_t> step_{-1};
};

}  // namespace tenon::host

// The messages and losses of one start of a LoopWorld. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/draft/comm.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <tuple>
#include <vector>

#include "tests/support/loop_comm.h"

namespace tenon_tests {

using LoopTime = std::chrono::steady_clock::time_point;

// Which ranks are stopped, and which are on the other side of a cut.
struct LoopReach {
  std::vector<bool> stopped;
  std::vector<bool> side;
  bool between(int32_t a, int32_t b) const {
    return !stopped[static_cast<size_t>(a)] && !stopped[static_cast<size_t>(b)] &&
           side[static_cast<size_t>(a)] == side[static_cast<size_t>(b)];
  }
};

// What a rank knows of another.
struct LoopPeer {
  bool lost = false;
  std::optional<LoopTime> silent_since;
};

// One rank in a network.
struct LoopEnd {
  enum class State { kAbsent, kOpen, kLeft, kKilled };
  State state = State::kAbsent;
  std::thread::id thread;
  std::chrono::milliseconds silence{0};
  std::deque<tn_comm_event> events;
  std::condition_variable changed;
  bool woken = false;
  int64_t sends = 0;
  uint64_t calls = 0;
  uint64_t last_request = 0;
  uint64_t refused = 0;
  std::vector<LoopPeer> peers;
};

// The ranks of one epoch and secret. The caller holds the lock of the world.
class LoopNetwork {
 public:
  LoopNetwork(int32_t ranks, const LoopScript& script, const LoopReach& reach);

  int32_t ranks() const { return static_cast<int32_t>(ends_.size()); }
  LoopEnd& end(int32_t rank) { return *ends_[static_cast<size_t>(rank)]; }
  bool joined() const { return joined_; }
  void join(int32_t rank, int32_t silence_ms);
  void withdraw(int32_t rank);  // before all have joined
  // Whether a rank that was killed may join again: the others have noticed.
  [[nodiscard]] bool may_return(int32_t rank) const;
  void return_rank(int32_t rank, int32_t silence_ms);
  std::vector<int32_t> missing() const;

  uint64_t send(int32_t rank, const tn_comm_message& message);
  uint64_t receive(int32_t rank, const tn_comm_message& message);
  // Messages of all ranks on a channel so far.
  [[nodiscard]] uint64_t sent(uint32_t channel) const;
  // Moves what is due. `next` is the moment of the rank's next event that no other call brings about.
  void move(LoopTime now);
  LoopTime next(int32_t rank) const;

  void kill(int32_t rank);
  void leave(int32_t rank);

 private:
  struct Sent {
    uint64_t request;
    const std::byte* data;
    uint64_t bytes;
    LoopTime due;
  };
  struct Room {
    uint64_t request;
    std::byte* data;
    uint64_t bytes;
  };
  // Messages of a pair on one channel.
  struct Stream {
    std::deque<Sent> sent;
    std::deque<std::vector<std::byte>> arrived;
    std::deque<Room> rooms;
    LoopTime last_due{};
    uint64_t number = 0;
  };
  using Key = std::tuple<int32_t, int32_t, uint32_t>;  // from, to, channel

  uint64_t number_request(int32_t rank) { return ++end(rank).last_request; }
  LoopPeer& peer(int32_t rank, int32_t of) { return end(rank).peers[static_cast<size_t>(of)]; }
  const LoopPeer& peer(int32_t rank, int32_t of) const {
    return ends_[static_cast<size_t>(rank)]->peers[static_cast<size_t>(of)];
  }
  LoopTime due(const Key& key, Stream& stream) const;
  bool passable(int32_t from, int32_t to) const;
  void finish(int32_t rank, int32_t with, uint64_t request, tn_status status);
  void fill(const Key& key, Stream& stream, const std::byte* data, uint64_t bytes);
  void deliver(const Key& key, Stream& stream, LoopTime now);
  void notice(int32_t rank, int32_t of, LoopTime now);
  void part(int32_t rank, int32_t of);  // `of` has left
  void lose(int32_t rank, int32_t of);
  void notify_all();

  const LoopScript& script_;
  const LoopReach& reach_;
  std::vector<std::unique_ptr<LoopEnd>> ends_;
  std::map<Key, Stream> streams_;
  bool joined_ = false;
};

}  // namespace tenon_tests

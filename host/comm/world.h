// The processes that have joined, and the transfers between any two of them. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "host/comm/communicator.h"

namespace tenon::host {

// A thread of its own calls the communicator. The functions throw TN_IO once a process is lost that a transfer needs,
// naming it, and TN_CANCELLED once `ending` is set: the world is broken then. One thread at a time calls them.
class World : base::NotCopied {
 public:
  // Joins; returns when all processes are there. type, ending: must outlive the world; ending may be null. Throws
  // TN_INVALID if all processes are to be servers.
  World(const CommType& type, const Values& attributes, const tn_services* services, const JoinOptions& options,
        const std::atomic<bool>* ending);
  // Leaves.
  ~World();

  [[nodiscard]] int64_t rank() const { return world_.rank; }
  [[nodiscard]] int64_t ranks() const { return world_.ranks; }
  [[nodiscard]] int64_t servers() const { return servers_; }
  [[nodiscard]] uint32_t epoch() const { return epoch_; }
  [[nodiscard]] const std::string& comm() const { return type_.description.type; }
  // Whether messages with the others go on after a process is lost.
  [[nodiscard]] bool survives() const { return (world_.traits & TN_COMM_SURVIVES) != 0; }
  // Connections and messages of strangers that were dropped so far.
  [[nodiscard]] uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }
  // For any thread: the rank whose bytes this process waits for, or that does not take those of this one; -1: there is
  // none.
  [[nodiscard]] int64_t waits_for() const;

  // Bytes for another rank, or of it. Both sides know how many.
  struct Outgoing {
    int64_t to;
    const void* data;
    uint64_t bytes;
  };
  struct Incoming {
    int64_t from;
    void* data;
    uint64_t bytes;
  };
  class Transfers;
  // Begins to send and to receive, and returns at once. Transfers of one pair of ranks on one channel match in their
  // order. Those of no bytes are left out. channel: at most kMostChannel.
  [[nodiscard]] Transfers begin(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming,
                                uint32_t channel);
  // The same with one rank, whose loss ends the transfers alone. returns: of the process that is meant (returns()):
  // with another one that has taken its place they are lost.
  [[nodiscard]] Transfers begin_with(int64_t rank, uint64_t returns, std::span<const Outgoing> outgoing,
                                     std::span<const Incoming> incoming, uint32_t channel);
  static constexpr uint32_t kMostChannel = 1023;
  // Sends a copy of few bytes to ranks, and waits for nobody; of more it waits for the end.
  void send_copy(std::span<const std::byte> bytes, std::span<const int64_t> to);
  // Returns when this holds: it is looked at whenever transfers end. rank: that waits_for() has meanwhile. Throws if
  // the world breaks.
  void wait_until(const std::function<bool()>& holds, int64_t rank);
  // For any thread: how often a rank was lost, and how often a new process has taken its place.
  [[nodiscard]] uint64_t losses(int64_t rank) const { return present_[static_cast<size_t>(rank)].losses; }
  [[nodiscard]] uint64_t returns(int64_t rank) const { return present_[static_cast<size_t>(rank)].returns; }
  // Throws TN_IO for the loss of a rank, naming the first one that is lost, but for those that may be.
  [[noreturn]] void fail_lost(int64_t peer) const;
  // Says that the ranks of [first, end) may be lost: they are no cause of a world that breaks.
  void set_spare(int64_t first, int64_t end);
  // Breaks the world: to the others this process is lost. Transfers end.
  void abandon() noexcept;

 private:
  // What was begun together.
  struct Group {
    std::atomic<uint64_t> unfinished{0};  // pieces
    std::atomic<bool> lost{false};        // the rank of begin_with
    bool may_be_lost = false;             // of begin_with
    uint64_t returns = 0;                 // likewise
    std::vector<std::byte> own;           // what is sent, if nobody waits for the end
    std::shared_ptr<const void> memory;   // of detach
  };
  struct Piece {
    bool is_send;
    int32_t peer;
    uint32_t channel;
    void* data;
    uint64_t bytes;
    std::shared_ptr<Group> group;
  };
  using Place = std::list<Piece>::iterator;
  enum class Activity { kBusy, kParked, kInProgress };  // of the thread
  void run(const Values& attributes, const tn_services* services, const JoinOptions& options);
  void serve(Communicator& comm);
  [[nodiscard]] bool park();
  void begin_posted(Communicator& comm);
  [[nodiscard]] std::span<const tn_comm_event> progress(Communicator& comm);
  void take(const tn_comm_event& event);
  void take_presence(const tn_comm_event& event);
  void finish(Place place, bool lost);
  void fail_all(const std::exception_ptr& error);
  void call_thread();
  void post(const std::shared_ptr<Group>& group, std::span<const Outgoing> outgoing, std::span<const Incoming> incoming,
            uint32_t channel);
  [[nodiscard]] bool is_over(const Group& group) const { return group.unfinished == 0 || is_broken_; }
  void wait(const Group& group);
  void throw_if_broken();

  const CommType& type_;
  const uint32_t epoch_;
  const int64_t servers_;
  const std::atomic<bool>* const ending_;
  volatile int32_t cancel_ = 0;
  tn_comm_world world_ = {};
  std::atomic<uint64_t> refused_{0};
  struct Presence {
    std::atomic<uint64_t> losses{0}, returns{0};
  };
  std::vector<Presence> present_;                       // by rank
  std::atomic<int64_t> spare_first_{0}, spare_end_{0};  // ranks

  mutable std::mutex mutex_;
  std::condition_variable called_, ended_;  // for the thread; for callers
  std::list<Piece> unfinished_;             // of a group those that it receives, then those that it sends
  std::deque<Place> posted_;                // of these, that are not begun yet
  std::vector<int32_t> lost_;               // ranks, in the order in which they were lost
  bool joined_ = false, leaving_ = false, abandoned_ = false;
  std::exception_ptr error_;      // why the world is broken; null: it is not
  Communicator* comm_ = nullptr;  // while the thread serves, for wake
  Activity activity_ = Activity::kBusy;
  std::atomic<bool> is_called_{false};  // since the thread has looked; the next: whether error_ is set
  std::atomic<bool> is_broken_{false};
  std::atomic<const Group*> awaited_{nullptr};  // by a caller
  std::atomic<int64_t> awaited_rank_{-1};       // likewise
  std::map<uint64_t, Place> begun_;             // by number; of the thread alone
  std::chrono::steady_clock::time_point at_;    // of the last event or call
  std::thread thread_;
};

// Transfers that were begun together, or none. Until they have ended, for which the destructor waits, they borrow their
// memory and the world. If the world breaks they end when its communicator is closed.
class World::Transfers {
 public:
  Transfers() = default;
  Transfers(Transfers&& other) noexcept : world_(other.world_), group_(std::move(other.group_)) {}
  Transfers& operator=(Transfers&& other) noexcept {
    finish();
    world_ = other.world_;
    group_ = std::move(other.group_);
    return *this;
  }
  ~Transfers() { finish(); }

  // Whether all bytes have arrived and been sent, or the transfers have failed.
  [[nodiscard]] bool are_done() const { return group_ == nullptr || group_->unfinished == 0; }
  // Whether they have failed: those of begin_with alone.
  [[nodiscard]] bool are_lost() const { return group_ != nullptr && group_->lost; }
  // Lets them end whenever they do, with the memory that they borrow.
  void detach(std::shared_ptr<const void> memory) {
    if (group_ != nullptr) group_->memory = std::move(memory);
    group_.reset();
  }
  // Returns when they have ended. Throws as the functions of the world.
  void wait() {
    if (are_done()) return;
    world_->wait(*group_);
    if (!are_done()) world_->throw_if_broken();
  }

 private:
  friend World;
  Transfers(World& world, std::shared_ptr<Group> group) : world_(&world), group_(std::move(group)) {}
  void finish() noexcept {
    if (!are_done()) world_->wait(*group_);
    group_.reset();
  }

  World* world_ = nullptr;
  std::shared_ptr<Group> group_;  // null: none
};

}  // namespace tenon::host

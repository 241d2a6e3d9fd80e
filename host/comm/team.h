// The processes of a training, and what they tell each other. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
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

// The team that this process is in. A thread of its own calls the communicator. The functions are collective: all
// processes of the team call the same ones in the same order, from one thread at a time; transfers that were begun go
// on meanwhile. Each throws TN_IO once a process is lost, naming it, and TN_CANCELLED once `ending` is set.
class Team : base::NotCopied {
 public:
  // Joins; returns when all processes are there. type, ending: must outlive the team; ending may be null. Throws
  // TN_INVALID if all processes are to be servers.
  Team(const CommType& type, const Values& attributes, const tn_services* services, const JoinOptions& options,
       const std::atomic<bool>* ending = nullptr);
  // Leaves.
  ~Team();

  [[nodiscard]] int64_t rank() const { return world_.rank; }
  [[nodiscard]] int64_t processes() const { return world_.ranks; }
  // The last processes, which own the rows of tables and compute no shards; 0: all processes do both.
  [[nodiscard]] int64_t servers() const { return servers_; }
  [[nodiscard]] int64_t trainers() const { return processes() - servers_; }
  [[nodiscard]] uint32_t epoch() const { return epoch_; }
  [[nodiscard]] const std::string& comm() const { return type_.description.type; }
  // Connections and messages of strangers that were dropped so far.
  [[nodiscard]] uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

  // What this process does, for any thread. step: of the training that uses the team, by its number of updates; -1:
  // none does.
  void set_step(int64_t step) noexcept { step_.store(step, std::memory_order_relaxed); }
  [[nodiscard]] int64_t step() const { return step_.load(std::memory_order_relaxed); }
  // The process whose bytes this one waits for, or that does not take those of this one; -1: there is none.
  [[nodiscard]] int64_t waits_for() const;

  // Bytes for another process, or of it. Both sides know how many.
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
  // Begins to send and to receive, and returns at once. Transfers of one pair of processes on one channel match in
  // their order. Those of no bytes are left out. channel: at most kMostChannel; that of the functions below is 0.
  [[nodiscard]] Transfers begin(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming,
                                uint32_t channel);
  static constexpr uint32_t kMostChannel = 1023;
  // Returns when all bytes have arrived and been sent.
  void exchange(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming);
  // Gives all processes the bytes of each: `all` has as many for each rank, and those of this one at its place.
  void gather(std::span<std::byte> all);
  [[nodiscard]] Transfers begin_gather(std::span<std::byte> all);
  // Gives the bytes of a process to the others, for which it does not wait if they are few.
  void broadcast(std::span<std::byte> bytes, int64_t from = 0);

 private:
  // What was begun together.
  struct Group {
    std::atomic<uint64_t> unfinished{0};  // pieces
    std::vector<std::byte> own;           // what is sent, if nobody waits for the end
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
  [[noreturn]] void fail_lost(int32_t peer) const;
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
  std::atomic<int64_t> step_{-1};

  mutable std::mutex mutex_;
  std::condition_variable called_, ended_;  // for the thread; for callers
  std::list<Piece> unfinished_;             // of a group those that it receives, then those that it sends
  std::deque<Place> posted_;                // of these, that are not begun yet
  bool joined_ = false, leaving_ = false;
  std::exception_ptr error_;      // why the team is broken; null: it is not
  Communicator* comm_ = nullptr;  // while the thread serves, for wake
  Activity activity_ = Activity::kBusy;
  std::atomic<bool> is_called_{false};  // since the thread has looked; the next: whether error_ is set
  std::atomic<bool> is_broken_{false};
  std::atomic<const Group*> awaited_{nullptr};  // by a caller
  std::map<uint64_t, Place> begun_;             // by number; of the thread alone, as the next
  std::vector<int32_t> lost_;                   // processes, in the order in which they were lost
  std::chrono::steady_clock::time_point at_;    // of the last event or call
  std::thread thread_;
};

// Transfers that were begun together, or none. Until they have ended, for which the destructor waits, they borrow their
// memory and the team. If the team breaks they end when its communicator is closed.
class Team::Transfers {
 public:
  Transfers() = default;
  Transfers(Transfers&& other) noexcept : team_(other.team_), group_(std::move(other.group_)) {}
  Transfers& operator=(Transfers&& other) noexcept {
    finish();
    team_ = other.team_;
    group_ = std::move(other.group_);
    return *this;
  }
  ~Transfers() { finish(); }

  // Whether all bytes have arrived and been sent.
  [[nodiscard]] bool are_done() const { return group_ == nullptr || group_->unfinished == 0; }
  // Returns when they have. Throws as the functions of the team.
  void wait() {
    if (are_done()) return;
    team_->wait(*group_);
    if (!are_done()) team_->throw_if_broken();
  }

 private:
  friend Team;
  Transfers(Team& team, std::shared_ptr<Group> group) : team_(&team), group_(std::move(group)) {}
  void finish() noexcept {
    if (!are_done()) team_->wait(*group_);
    group_.reset();
  }

  Team* team_ = nullptr;
  std::shared_ptr<Group> group_;  // null: none
};

}  // namespace tenon::host

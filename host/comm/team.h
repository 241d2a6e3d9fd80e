// The processes of a training, and what they tell each other. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
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
#include <vector>

#include "host/comm/communicator.h"

namespace tenon::host {

// The team that this process is in. A thread of its own calls the communicator. The functions are collective: all
// processes of the team call the same ones in the same order, from one thread at a time. Each throws TN_IO once a
// process is lost, naming it, and TN_CANCELLED once `ending` is set.
class Team : base::NotCopied {
 public:
  // Joins; returns when all processes are there. type, ending: must outlive the team; ending may be null.
  Team(const CommType& type, const Values& attributes, const tn_services* services, const JoinOptions& options,
       const std::atomic<bool>* ending = nullptr);
  // Leaves.
  ~Team();

  [[nodiscard]] int64_t rank() const { return world_.rank; }
  [[nodiscard]] int64_t processes() const { return world_.ranks; }
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
  // Sends and receives at the same time; returns when all bytes have arrived and been sent. Transfers of one pair of
  // processes match in their order. Those of no bytes are left out.
  void exchange(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming);
  // Gives all processes the bytes of each: `all` has as many for each rank, and those of this one at its place.
  void gather(std::span<std::byte> all);
  // Gives the bytes of process 0 to the others.
  void broadcast(std::span<std::byte> bytes);

 private:
  struct Piece {
    bool is_send;
    int32_t peer;
    void* data;
    uint64_t bytes;
  };
  using Place = std::list<Piece>::iterator;
  void run(const Values& attributes, const tn_services* services, const JoinOptions& options);
  void serve(Communicator& comm);
  void begin_posted(Communicator& comm);
  void take(const tn_comm_event& event);
  [[noreturn]] void fail_lost(int32_t peer) const;
  void fail_all(const std::exception_ptr& error);
  void post(std::list<Piece> pieces);

  const CommType& type_;
  const uint32_t epoch_;
  const std::atomic<bool>* const ending_;
  volatile int32_t cancel_ = 0;
  tn_comm_world world_ = {};
  std::atomic<uint64_t> refused_{0};
  std::atomic<int64_t> step_{-1};

  mutable std::mutex mutex_;
  std::condition_variable changed_;  // for both sides
  std::list<Piece> unfinished_;      // that a caller waits for: those that it receives, then those that it sends
  std::deque<Place> posted_;         // of these, that are not begun yet
  bool joined_ = false, leaving_ = false;
  std::exception_ptr error_;         // why the team is broken; null: it is not
  Communicator* comm_ = nullptr;     // while the thread serves, for wake
  std::map<uint64_t, Place> begun_;  // by request; of the thread alone, as the next
  std::vector<int32_t> lost_;        // processes, in the order in which they were lost
  std::thread thread_;
};

}  // namespace tenon::host

// Messages over MPI. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <tenon/draft/comm.hpp>
#include <vector>

#include "library.h"
#include "life.h"

namespace tenon_mpi {

// Point-to-point messages of a communicator of MPI; the channel is the tag. Beats on a tag of their own tell that a
// rank lives. If one is lost, all are: MPI promises nothing then, and is not called again.
class Mpi {
 public:
  static void describe(tn::CommDescription& description);
  Mpi(const tn::CommOpen& open, tn::CommEvents& events);

  void world(tn_comm_world& world) const;
  uint64_t send(const tn_comm_message& message);
  uint64_t receive(const tn_comm_message& message);
  void progress(int64_t timeout_us);
  void wake() noexcept;
  void abort(int32_t exit_code) noexcept;
  void close(int64_t timeout_us) noexcept;

 private:
  enum class Kind { kSend, kReceive, kBeatSent, kBeatReceived };
  // A request of MPI, beside its entry in requests_.
  struct Transfer {
    Kind kind;
    int32_t peer;
    uint64_t number;  // of the host's request; 0: none
    uint64_t bytes;
  };
  struct Peer {
    Time heard{};
    Time beat{};  // when the last one was sent
    bool beating = false;
    bool left = false;  // it said so, and is silent from there on
  };

  void open_world(const tn::CommOpen& open);
  void join(const tn::CommOpen& open, Time deadline);
  tn::Failure missing(int32_t deadline_ms) const;
  void duplicate(const tn::CommOpen& open, Time deadline);
  uint64_t begin(const tn_comm_message& message, Kind kind);
  void start(Kind kind, int32_t peer, uint64_t number, void* data, uint64_t bytes, int tag, MPI_Comm comm);
  void poll();
  void finish(const Transfer& transfer, const MPI_Status& status, int error);
  void listen();
  void beat(Time now);
  void lose(int32_t peer);
  bool take_wake();
  void wait(Time deadline, uint32_t rounds);
  bool end_transfers(Time deadline);

  tn::CommEvents& events_;
  std::shared_ptr<const Library> mpi_;
  std::unique_ptr<Life> life_;
  MPI_Comm comm_{};
  int32_t rank_ = 0;
  int32_t ranks_ = 1;
  std::chrono::milliseconds silence_{0};
  std::vector<Peer> peers_;
  Time last_beat_{};
  std::shared_ptr<std::vector<char>> beats_;  // [2 ranks + 1]: those sent, those received, the last one

  uint64_t last_number_ = 0;
  std::vector<MPI_Request> requests_;
  std::vector<Transfer> transfers_;
  std::vector<int> indices_;  // room for the results of MPI_Testsome
  std::vector<MPI_Status> statuses_;
  bool lost_ = false;

  std::mutex mutex_;  // of woken_
  std::condition_variable changed_;
  bool woken_ = false;
};

}  // namespace tenon_mpi

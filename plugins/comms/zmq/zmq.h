// Messages over ZeroMQ. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tenon/draft/comm.hpp>
#include <vector>

#include "outbox.h"
#include "packets.h"
#include "secret.h"
#include "sockets.h"

namespace tenon_zmq {

using Time = std::chrono::steady_clock::time_point;

constexpr uint64_t kMostBytes = uint64_t{1} << 30;  // of a message

// Each rank listens at a ROUTER and connects a DEALER to each other rank, on which its messages go. The other direction
// of a DEALER has answers. All ranks meet rank 0 first, which tells them where the others listen. A rank is lost when
// the DEALER to it loses its connection. A new process may take its place then: it meets rank 0 and the ranks that are
// there, and each of these connects with it once it has proved itself.
class Zmq {
 public:
  static void describe(tn::CommDescription& description);
  Zmq(const tn::CommOpen& open, tn::CommEvents& events);

  void world(tn_comm_world& world) const;
  uint64_t send(const tn_comm_message& message);
  uint64_t receive(const tn_comm_message& message);
  void progress(int64_t timeout_us);
  void wake() noexcept { outbox_.wake(); }
  void abort(int32_t exit_code) noexcept;
  void close(int64_t timeout_us) noexcept;

 private:
  struct Room {
    uint64_t number;
    void* data;
    uint64_t bytes;
  };
  struct Channel {
    std::deque<Message> arrived;
    std::deque<Room> rooms;
  };
  struct Peer {
    Socket monitor;  // of the next, which is destroyed first
    Socket dealer;
    std::string endpoint;
    std::string route;    // its connection to the ROUTER, once it has proved itself
    std::string greeter;  // the route that has said hello and not proved itself
    Nonce instance{};     // of the object at the other end
    Nonce newcomer{};     // likewise, of one that says hello although the rank is lost
    Nonce nonce{};        // of the meeting that this rank has begun
    Nonce theirs{};       // of the meetings that the peer has begun: nonces of both
    Nonce mine{};
    bool verified = false;  // it has shown that it has the secret, as the end that listens
    bool welcomed = false;  // by it
    bool left = false;
    bool seen = false;  // it knows that this rank has left
    bool lost = false;
    bool returns = false;   // it is lost, and a new process has begun to take its place
    bool waits = false;     // a new process has said hello before the rank is lost
    Time waits_until{};     // to be refused then
    uint32_t failures = 0;  // of connections
    std::map<uint32_t, Channel> channels;
  };

  // join.cpp
  void join(const tn::CommOpen& open);
  bool begin_to_listen(const tn::CommOpen& open);
  bool advance();  // whether all have joined
  [[noreturn]] void miss(const tn::CommOpen& open) const;
  void connect(int32_t rank, const std::string& endpoint);
  void on_hello(const std::string& route, Reader& packet);
  void on_proof(const std::string& route, Reader& packet);
  void on_challenge(int32_t rank, Reader& packet);
  void on_refused(Reader& packet);
  void on_table(int32_t rank, Reader& packet);
  Writer table();
  void begin_return(int32_t rank, const std::string& endpoint);
  void return_rank(int32_t rank);
  void give_up_return(int32_t rank);
  void challenge(int32_t rank);
  void refuse_late();
  void tell_table();
  void refuse(const std::string& route, tn_status status, const std::string& reason);
  Meeting meeting(int32_t from, int32_t to, const Nonce& from_nonce, const Nonce& to_nonce) const;

  // traffic.cpp
  uint64_t check(const tn_comm_message& message);
  bool step();  // lets messages move; whether there may be more at once
  void wait(Time deadline);
  bool read_router();
  void on_guest(const std::string& route, Message& head, Message& body);
  void on_peer(int32_t rank, Message& head, Message& body);
  void on_data(Peer& other, int32_t rank, uint32_t number, Message& body);
  void read_dealer(int32_t rank);
  void read_monitor(int32_t rank);
  void answer(const std::string& route, const Writer& packet);
  void tell(int32_t rank, const Writer& packet);
  void fill(int32_t rank, const Room& room, const Message& message);
  void part(int32_t rank);
  void lose(int32_t rank);
  std::optional<int32_t> rank_at(const std::string& route) const;
  Peer& peer(int32_t rank) { return peers_[static_cast<size_t>(rank)]; }
  const Peer& peer(int32_t rank) const { return peers_[static_cast<size_t>(rank)]; }
  void close_sockets() noexcept;

  tn::CommEvents& events_;
  int32_t rank_;
  int32_t ranks_;
  uint32_t epoch_;
  int32_t silence_ms_;
  bool encrypt_;
  Secret secret_;
  const Nonce instance_ = draw_nonce();
  Outbox outbox_;  // outlives what libzmq has borrowed
  std::optional<Context> context_;
  Socket router_monitor_;  // of the next, which is destroyed first
  Socket router_;
  std::string endpoint_;  // of the ROUTER, for others
  std::vector<Peer> peers_;
  std::map<std::string, int32_t, std::less<>> routes_;
  std::optional<tn::Failure> refusal_;  // of this rank by another
  bool joined_ = false;
  bool told_ = false;     // rank 0: where all listen
  bool left_ = false;     // some rank has left
  bool touched_ = false;  // something was sent in this step
  uint64_t refused_ = 0;
  uint64_t last_number_ = 0;
  std::vector<Loan> loans_;  // those that have ended, between two steps empty
};

}  // namespace tenon_zmq

// Messages between ranks that have joined, and their losses. SPDX-License-Identifier: Apache-2.0
#include <poll.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <utility>

#include "zmq.h"

namespace tenon_zmq {

namespace {

constexpr uint64_t kCopied = 4096;  // bytes up to which a send is copied
constexpr int kMostReads = 256;     // messages in a step

// What libzmq gives back, with the place to tell it.
struct Borrowed {
  Outbox& outbox;
  Loan loan;
};

void give_back(void* /*data*/, void* hint) {
  const std::unique_ptr<Borrowed> borrowed(static_cast<Borrowed*>(hint));
  borrowed->outbox.add(borrowed->loan);
}

}  // namespace

uint64_t Zmq::check(const tn_comm_message& message) {
  if (message.peer < 0 || message.peer >= ranks_ || message.peer == rank_ || message.channel > 1023)
    throw tn::Failure(TN_MISUSE, "",
                      "peer " + std::to_string(message.peer) + ", channel " + std::to_string(message.channel) +
                          ": expected another of " + std::to_string(ranks_) + " ranks, and at most 1023");
  if (message.bytes > kMostBytes)
    throw tn::Failure(TN_MISUSE, "",
                      std::to_string(message.bytes) + " bytes: expected at most " + std::to_string(kMostBytes));
  return ++last_number_;
}

uint64_t Zmq::send(const tn_comm_message& message) {
  const uint64_t number = check(message);
  Peer& other = peer(message.peer);
  if (other.lost || other.left) {
    events_.done(number, message.peer, TN_IO);
    return number;
  }
  Message head(Writer(Kind::kData).add(message.channel).text());
  if (message.bytes <= kCopied) {
    Message body(std::string_view(static_cast<const char*>(message.data), message.bytes));
    events_.done(number, message.peer, TN_OK);
    other.dealer.send(std::move(head), true);
    other.dealer.send(std::move(body));
    return number;
  }
  outbox_.expect_loan();
  auto borrowed = std::make_unique<Borrowed>(Borrowed{outbox_, {number, message.peer}});
  Message body(message.data, message.bytes, &give_back, borrowed.get());
  static_cast<void>(borrowed.release());
  other.dealer.send(std::move(head), true);
  other.dealer.send(std::move(body));
  return number;
}

uint64_t Zmq::receive(const tn_comm_message& message) {
  const uint64_t number = check(message);
  Peer& other = peer(message.peer);
  Channel& channel = other.channels[message.channel];
  const Room room{number, message.data, message.bytes};
  if (!channel.arrived.empty()) {
    fill(message.peer, room, channel.arrived.front());
    channel.arrived.pop_front();
  } else if (other.lost || other.left) {
    events_.done(number, message.peer, TN_IO);
  } else {
    channel.rooms.push_back(room);
  }
  return number;
}

void Zmq::fill(int32_t rank, const Room& room, const Message& message) {
  const bool fits = room.bytes == message.bytes();
  if (fits && room.bytes != 0) std::memcpy(room.data, message.data(), room.bytes);
  events_.done(room.number, rank, fits ? TN_OK : TN_BAD_DATA);
}

bool Zmq::step() {
  loans_.clear();
  if (outbox_.take(loans_)) events_.woken();
  for (const Loan& loan : loans_) events_.done(loan.number, loan.peer, peer(loan.peer).lost ? TN_IO : TN_OK);
  if (!router_) return false;
  const bool more = read_router();
  while (next_event(router_monitor_) != 0) ++refused_;
  refuse_late();
  for (int32_t rank = 0; rank < ranks_; ++rank) {
    if (peer(rank).dealer) read_dealer(rank);
    if (peer(rank).dealer) read_monitor(rank);
  }
  for (int32_t rank = 0; rank < ranks_ && left_; ++rank)
    if (peer(rank).left && !peer(rank).lost) part(rank);
  // A send may take the signal of a descriptor that a message has arrived.
  return std::exchange(touched_, false) || more;
}

void Zmq::wait(Time deadline) {
  std::vector<pollfd> descriptors;
  const auto add = [&](int descriptor) {
    if (descriptor >= 0) descriptors.push_back({descriptor, POLLIN, 0});
  };
  add(outbox_.descriptor());
  add(router_.descriptor());
  add(router_monitor_.descriptor());
  for (const Peer& other : peers_) {
    add(other.dealer.descriptor());
    add(other.monitor.descriptor());
  }
  const auto left =
      std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - std::chrono::steady_clock::now()).count();
  if (left <= 0) return;
  const timespec limit{static_cast<time_t>(left / 1'000'000'000),
                       static_cast<long>(left % 1'000'000'000)};  // NOLINT(google-runtime-int)
  ppoll(descriptors.data(), descriptors.size(), &limit, nullptr);
}

std::optional<int32_t> Zmq::rank_at(const std::string& route) const {
  const auto entry = routes_.find(route);
  return entry == routes_.end() ? std::nullopt : std::optional(entry->second);
}

bool Zmq::read_router() {
  for (int reads = 0; reads < kMostReads; ++reads) {
    Message route;
    Message head;
    Message body;
    if (!router_.receive(route)) return false;
    if (route.more()) router_.receive(head);
    bool more = head.more();
    if (more) {
      router_.receive(body);
      more = body.more();
    }
    for (Message rest; more; more = rest.more()) router_.receive(rest);
    const std::string name(route.text());
    if (const std::optional<int32_t> rank = rank_at(name))
      on_peer(*rank, head, body);
    else
      on_guest(name, head, body);
  }
  return true;
}

void Zmq::on_guest(const std::string& route, Message& head, Message& /*body*/) {
  Reader packet(head.text());
  switch (packet.take<Kind>()) {
    case Kind::kHello:
      return on_hello(route, packet);
    case Kind::kProof:
      return on_proof(route, packet);
    default:
      ++refused_;
  }
}

void Zmq::on_peer(int32_t rank, Message& head, Message& body) {
  Peer& other = peer(rank);
  Reader packet(head.text());
  const auto kind = packet.take<Kind>();
  if (other.lost && !other.returns) {
    if (!other.left) answer(other.route, Writer(Kind::kLost));
    return;
  }
  if (kind == Kind::kData) {
    const auto channel = packet.take<uint32_t>();
    if (packet.good() && channel <= 1023) on_data(other, rank, channel, body);
  } else if (kind == Kind::kBye) {
    other.left = left_ = true;
    answer(other.route, Writer(Kind::kSeen));
  }
}

void Zmq::on_data(Peer& other, int32_t rank, uint32_t number, Message& body) {
  Channel& channel = other.channels[number];
  if (channel.rooms.empty()) {
    channel.arrived.push_back(std::move(body));
    return;
  }
  fill(rank, channel.rooms.front(), body);
  channel.rooms.pop_front();
}

void Zmq::read_dealer(int32_t rank) {
  for (Message head; peer(rank).dealer && peer(rank).dealer.receive(head);) {
    Reader packet(head.text());
    switch (packet.take<Kind>()) {
      case Kind::kChallenge:
        on_challenge(rank, packet);
        break;
      case Kind::kWelcome:
        peer(rank).welcomed = peer(rank).verified;
        if (peer(rank).returns && peer(rank).welcomed) return_rank(rank);
        break;
      case Kind::kRefused:
        on_refused(packet);
        break;
      case Kind::kTable:
        on_table(rank, packet);
        break;
      case Kind::kSeen:
        peer(rank).seen = true;
        break;
      case Kind::kLost:
        if (joined_ && !peer(rank).lost) lose(rank);
        break;
      default:
        break;
    }
  }
}

void Zmq::read_monitor(int32_t rank) {
  while (peer(rank).monitor) {
    Peer& other = peer(rank);
    const int event = next_event(other.monitor);
    if (event == 0) return;
    if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) {
      other.nonce = draw_nonce();
      other.verified = false;
      if (!joined_ || other.returns)
        tell(rank, Writer(Kind::kHello).add(instance_).add(epoch_).add(rank_).add(ranks_).add(other.nonce));
    } else if (event != ZMQ_EVENT_DISCONNECTED) {
      ++other.failures;
    } else if (!joined_) {
      other.welcomed = false;
    } else if (other.returns) {
      give_up_return(rank);
    } else if (!other.left && !other.lost) {
      lose(rank);
    }
  }
}

void Zmq::tell(int32_t rank, const Writer& packet) {
  touched_ = true;
  peer(rank).dealer.send(Message(packet.text()));
}

// Drops a packet for a connection that is no more.
void Zmq::answer(const std::string& route, const Writer& packet) {
  touched_ = true;
  router_.send(Message(route), true);
  router_.send(Message(packet.text()));
}

// What a rank sent before it left can still be received.
void Zmq::part(int32_t rank) {
  bool messages = false;
  for (auto& [number, channel] : peer(rank).channels) {
    messages = messages || !channel.arrived.empty();
    for (const Room& room : channel.rooms) events_.done(room.number, rank, TN_IO);
    channel.rooms.clear();
  }
  if (!messages) lose(rank);
}

void Zmq::lose(int32_t rank) {
  Peer& other = peer(rank);
  other.lost = true;
  other.dealer.close();  // gives back what was not sent
  other.monitor.close();
  if (!other.left && !other.route.empty()) answer(other.route, Writer(Kind::kLost));
  for (auto& [number, channel] : other.channels)
    for (const Room& room : channel.rooms) events_.done(room.number, rank, TN_IO);
  other.channels.clear();
  events_.lost(rank);
  tell_table();
  if (other.waits) challenge(rank);
}

}  // namespace tenon_zmq

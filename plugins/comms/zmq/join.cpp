// How the ranks of a world find and accept each other. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <utility>

#include "endpoints.h"
#include "zmq.h"

namespace tenon_zmq {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kHandshakeMs = 5000;      // of a stranger who connects and says nothing
constexpr int kReconnectMs = 50;        // while the others may not listen yet
constexpr size_t kMostEndpoint = 1024;  // bytes of the text of an endpoint
constexpr int kFailed =
    ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;

std::string list(const std::vector<int32_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  return text;
}

void set_heartbeat(Socket& socket, int32_t silence_ms) {
  if (silence_ms <= 0) return;
  socket.set(ZMQ_HEARTBEAT_IVL, std::max(1, silence_ms / 3));
  socket.set(ZMQ_HEARTBEAT_TIMEOUT, silence_ms);
}

}  // namespace

void Zmq::join(const tn::CommOpen& open) {
  constexpr auto kSlice = milliseconds(20);
  const Time deadline = steady_clock::now() + milliseconds(std::max(0, open.deadline_ms()));
  router_ = Socket(*context_, ZMQ_ROUTER);
  router_.set(ZMQ_SNDHWM, 0);
  router_.set(ZMQ_RCVHWM, 0);
  router_.set(ZMQ_BACKLOG, 1024);
  router_.set(ZMQ_HANDSHAKE_IVL, kHandshakeMs);
  router_.set_most_bytes(static_cast<int64_t>(kMostBytes) + 4096);
  set_heartbeat(router_, silence_ms_);
  if (encrypt_) secret_.encrypt(router_, true);
  router_monitor_ = router_.monitor(*context_, kFailed);
  if (rank_ != 0) connect(0, Endpoint::parse(open.address()).text());
  bool listening = false;
  for (;;) {
    listening = listening || begin_to_listen(open);
    while (step()) {
    }
    if (refusal_) throw tn::Failure(*refusal_);
    if (listening && advance()) break;
    open.check_cancelled();
    if (steady_clock::now() >= deadline) miss(open);
    wait(std::min(deadline, steady_clock::now() + kSlice));
  }
  joined_ = true;
  for (int32_t rank = 0; rank < ranks_; ++rank)
    if (peer(rank).lost) events_.lost(rank);
}

// Returns false if the name of rank 0 is unknown so far.
bool Zmq::begin_to_listen(const tn::CommOpen& open) {
  const Endpoint meeting_place = Endpoint::parse(open.address());
  std::string host = open.listen();
  if (!meeting_place.tcp) {
    endpoint_ = meeting_place.text() + (rank_ == 0 ? "" : "." + std::to_string(rank_));
    if (!router_.bind(endpoint_)) fail("cannot listen at " + endpoint_);
    return true;
  }
  if (host.empty() && rank_ == 0) host = meeting_place.host;
  if (host.empty()) host = address_towards(meeting_place).value_or("");
  if (host.empty()) return false;
  endpoint_ = listen_at(router_, host, rank_ == 0 ? meeting_place.port : "*");
  return true;
}

bool Zmq::advance() {
  const auto all = [&](auto&& holds) {
    for (int32_t rank = 0; rank < ranks_; ++rank)
      if (rank != rank_ && !peer(rank).lost && !holds(peer(rank))) return false;
    return true;
  };
  const bool proved = all([](const Peer& other) { return !other.route.empty(); });
  if (rank_ == 0 && proved && !told_) {
    const Writer endpoints = table();
    for (int32_t rank = 1; rank < ranks_; ++rank) {
      answer(peer(rank).route, endpoints);
      if (!peer(rank).dealer) connect(rank, peer(rank).endpoint);
    }
    told_ = true;
  }
  // A rank that goes on before another has its welcome would send what the other counts as of a stranger.
  return proved && all([](const Peer& other) { return other.welcomed; });
}

// Returns where the ranks listen: an empty text for one that is lost.
Writer Zmq::table() {
  Writer table(Kind::kTable);
  peer(0).endpoint = endpoint_;
  for (const Peer& each : peers_) table.add_text(each.lost ? "" : each.endpoint);
  return table;
}

// A process has proved itself that takes the place of a lost rank.
void Zmq::begin_return(int32_t rank, const std::string& endpoint) {
  connect(rank, endpoint);
  peer(rank).returns = true;
  tell_table();
}

void Zmq::return_rank(int32_t rank) {
  peer(rank).lost = peer(rank).returns = false;
  if (joined_) events_.returned(rank);
  tell_table();
}

// Another process may try.
void Zmq::give_up_return(int32_t rank) {
  Peer& other = peer(rank);
  other.returns = other.welcomed = false;
  other.dealer.close();
  other.monitor.close();
  other.channels.clear();
}

void Zmq::miss(const tn::CommOpen& open) const {
  std::vector<int32_t> missing;
  uint32_t failures = 0;
  for (int32_t rank = 0; rank < ranks_; ++rank) {
    if (rank == rank_ || peer(rank).lost || (peer(rank).welcomed && !peer(rank).route.empty())) continue;
    // Before rank 0 has told where they are, others are not missing but unknown.
    if (rank_ != 0 && rank != 0 && !peer(rank).dealer && peer(rank).route.empty() && !peer(0).welcomed) continue;
    missing.push_back(rank);
    failures += peer(rank).failures;
  }
  std::string message = list(missing) + " did not connect within " + std::to_string(open.deadline_ms()) + " ms";
  if (failures != 0)
    message += "; " + std::to_string(failures) + " handshakes failed: the secrets or the attribute encrypt differ";
  if (refused_ != 0) message += "; " + std::to_string(refused_) + " connections of strangers were refused";
  throw tn::Failure(TN_IO, "", message);
}

void Zmq::connect(int32_t rank, const std::string& endpoint) {
  Peer& other = peer(rank);
  other.endpoint = endpoint;
  other.dealer = Socket(*context_, ZMQ_DEALER);
  other.dealer.set(ZMQ_SNDHWM, 0);
  other.dealer.set(ZMQ_RCVHWM, 0);
  other.dealer.set(ZMQ_RECONNECT_IVL, kReconnectMs);
  other.dealer.set(ZMQ_IPV6, endpoint.find('[') != std::string::npos ? 1 : 0);
  set_heartbeat(other.dealer, silence_ms_);
  if (encrypt_) secret_.encrypt(other.dealer, false);
  other.monitor = other.dealer.monitor(*context_, kFailed | ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED);
  other.dealer.connect(endpoint);
}

Meeting Zmq::meeting(int32_t from, int32_t to, const Nonce& from_nonce, const Nonce& to_nonce) const {
  return {epoch_, ranks_, from, to, from_nonce, to_nonce};
}

void Zmq::refuse(const std::string& route, tn_status status, const std::string& reason) {
  ++refused_;
  answer(route, Writer(Kind::kRefused).add(status).add_text(reason));
}

// Someone has connected and says who it is.
void Zmq::on_hello(const std::string& route, Reader& packet) {
  const auto instance = packet.take<Nonce>();
  const auto epoch = packet.take<uint32_t>();
  const auto rank = packet.take<int32_t>();
  const auto ranks = packet.take<int32_t>();
  const auto nonce = packet.take<Nonce>();
  if (!packet.good()) {
    ++refused_;
    return;
  }
  const std::string me = "rank " + std::to_string(rank_) + " ";
  if (epoch != epoch_)
    return refuse(route, TN_INVALID,
                  me + "is of epoch " + std::to_string(epoch_) + ", this process of " + std::to_string(epoch));
  if (ranks != ranks_)
    return refuse(
        route, TN_INVALID,
        me + "expects a world of " + std::to_string(ranks_) + " ranks, this process one of " + std::to_string(ranks));
  if (rank < 0 || rank >= ranks_ || rank == rank_)
    return refuse(route, TN_INVALID, me + "knows no other rank " + std::to_string(rank));
  Peer& other = peer(rank);
  const bool may_return = other.lost && rank != 0;
  const bool is_other = !other.route.empty() && other.instance != instance;
  // A new process may be faster than the news that the one before it has ended.
  const bool may_wait = joined_ && is_other && rank != 0 && silence_ms_ > 0 && !other.left;
  if (!may_return && !may_wait && (joined_ || is_other))
    return refuse(route, TN_INVALID, "another process has joined as rank " + std::to_string(rank));
  other.greeter = route;
  other.theirs = nonce;
  if (other.route.empty()) other.instance = instance;
  other.newcomer = instance;
  other.waits = !may_return && may_wait;
  other.waits_until = steady_clock::now() + milliseconds(silence_ms_);
  if (!other.waits) challenge(rank);
}

void Zmq::challenge(int32_t rank) {
  Peer& other = peer(rank);
  other.mine = draw_nonce();
  other.waits = false;
  answer(other.greeter, Writer(Kind::kChallenge)
                            .add(other.mine)
                            .add(secret_.proof(meeting(rank, rank_, other.theirs, other.mine), true)));
}

// Refuses processes that take the place of ranks that are there.
void Zmq::refuse_late() {
  for (int32_t rank = 0; rank < ranks_; ++rank) {
    Peer& other = peer(rank);
    if (!other.waits || steady_clock::now() < other.waits_until) continue;
    other.waits = false;
    refuse(std::exchange(other.greeter, {}), TN_INVALID, "another process has joined as rank " + std::to_string(rank));
  }
}

// Tells those that are joining in the place of others where the ranks listen now.
void Zmq::tell_table() {
  for (const Peer& each : peers_)
    if (rank_ == 0 && each.returns) answer(each.route, table());
}

// Someone who has said hello shows that it has the secret.
void Zmq::on_proof(const std::string& route, Reader& packet) {
  const auto greeter =
      std::find_if(peers_.begin(), peers_.end(), [&](const Peer& each) { return each.greeter == route; });
  const auto proof = packet.take<Proof>();
  const std::string endpoint = packet.take_text();
  if (greeter == peers_.end() || !packet.good() || endpoint.size() > kMostEndpoint) {
    ++refused_;
    return;
  }
  const auto rank = static_cast<int32_t>(greeter - peers_.begin());
  const Proof expected = secret_.proof(meeting(rank, rank_, greeter->theirs, greeter->mine), false);
  greeter->greeter.clear();
  if (sodium_memcmp(proof.data(), expected.data(), expected.size()) != 0)
    return refuse(route, TN_REFUSED, "rank " + std::to_string(rank_) + " has another secret");
  routes_.erase(greeter->route);
  if (greeter->lost) {  // nothing of the process before it is left
    Peer returning;
    returning.instance = greeter->newcomer;
    returning.lost = true;
    *greeter = std::move(returning);
  }
  greeter->route = route;
  greeter->endpoint = endpoint;
  routes_[route] = rank;
  told_ = false;  // a connection after the first one has to be told again
  answer(route, Writer(Kind::kWelcome));
  if (greeter->lost) begin_return(rank, endpoint);
}

void Zmq::on_challenge(int32_t rank, Reader& packet) {
  Peer& other = peer(rank);
  const auto nonce = packet.take<Nonce>();
  const auto proof = packet.take<Proof>();
  const Meeting both = meeting(rank_, rank, other.nonce, nonce);
  const Proof expected = secret_.proof(both, true);
  if (!packet.good() || sodium_memcmp(proof.data(), expected.data(), expected.size()) != 0) {
    ++refused_;
    ++other.failures;
    return;
  }
  other.verified = true;
  tell(rank, Writer(Kind::kProof).add(secret_.proof(both, false)).add_text(endpoint_));
}

void Zmq::on_refused(Reader& packet) {
  const auto status = packet.take<tn_status>();
  std::string reason = packet.take_text().substr(0, 200);
  if (joined_ || !packet.good() || refusal_) return;
  for (char& letter : reason)
    if (letter < ' ' || letter > '~') letter = '?';
  refusal_ = tn::Failure(status == TN_REFUSED ? TN_REFUSED : TN_INVALID, "", reason);
}

void Zmq::on_table(int32_t rank, Reader& packet) {
  if (rank != 0 || joined_ || !peer(0).welcomed) return;
  std::vector<std::string> endpoints;
  for (int32_t each = 0; each < ranks_; ++each) endpoints.push_back(packet.take_text());
  if (!packet.good()) return;
  for (int32_t each = 1; each < ranks_; ++each) {
    const std::string& endpoint = endpoints[static_cast<size_t>(each)];
    if (each == rank_) continue;
    if (endpoint.empty()) {  // it is lost, or joins in the place of one that is
      if (!peer(each).welcomed) give_up_return(each);
      peer(each).lost = !peer(each).welcomed;
    } else if (!peer(each).dealer) {
      peer(each).lost = false;
      connect(each, endpoint);
    }
  }
}

}  // namespace tenon_zmq

// SPDX-License-Identifier: Apache-2.0
#include "zmq.h"

#include <algorithm>
#include <tenon/plugin.hpp>

#include "endpoints.h"

namespace tenon_zmq {

namespace {

constexpr int64_t kFarFuture = int64_t{1} << 40;  // microseconds

Time after(int64_t timeout_us) {
  return std::chrono::steady_clock::now() + std::chrono::microseconds(std::clamp<int64_t>(timeout_us, 0, kFarFuture));
}

int32_t check_rank(const tn::CommOpen& open) {
  if (open.address().empty() && open.ranks() != 1)
    throw tn::Failure(TN_UNSUPPORTED, "address",
                      "expected where rank 0 listens, such as tcp://10.0.0.4:5000: no launcher connects the ranks");
  if (open.ranks() < 1)
    throw tn::Failure(TN_INVALID, "ranks", "expected at least 1, got " + std::to_string(open.ranks()));
  if (open.rank() < 0 || open.rank() >= open.ranks())
    throw tn::Failure(TN_INVALID, "rank",
                      "expected 0 to " + std::to_string(open.ranks() - 1) + ", got " + std::to_string(open.rank()));
  return open.rank();
}

}  // namespace

void Zmq::describe(tn::CommDescription& description) {
  description.type("zmq", "messages over ZeroMQ: TCP or sockets of one machine, without a launcher");
  description.traits(TN_COMM_SURVIVES);
  description.attribute(
      tn::bool_attribute("encrypt", true)
          .doc("encrypt all messages, if there is a secret; without it only the join needs the secret"));
  description.attribute(tn::int_attribute("io_threads", 1)
                            .doc("threads that move messages; encryption of one takes a core at 100 MB/s to 1 GB/s")
                            .at_least(1)
                            .at_most(16));
}

Zmq::Zmq(const tn::CommOpen& open, tn::CommEvents& events)
    : events_(events),
      rank_(check_rank(open)),
      ranks_(open.ranks()),
      epoch_(open.epoch()),
      silence_ms_(open.silence_ms()),
      encrypt_(open.attributes().flag("encrypt") && !open.secret().empty()),
      secret_(open.secret()),
      peers_(static_cast<size_t>(open.ranks())) {
  if (encrypt_ && zmq_has("curve") == 0) throw tn::Failure(TN_UNSUPPORTED, "encrypt", "this libzmq has no CURVE");
  if (ranks_ == 1) return;
  context_.emplace(static_cast<int>(open.attributes().integer("io_threads")), 4 * ranks_ + 64);
  join(open);
}

void Zmq::world(tn_comm_world& world) const {
  world.rank = rank_;
  world.ranks = ranks_;
  if (secret_.is_set()) world.traits |= TN_COMM_AUTHENTICATED;
  if (encrypt_) world.traits |= TN_COMM_ENCRYPTED;
  world.most_bytes = kMostBytes;
  world.refused = refused_;
}

void Zmq::progress(int64_t timeout_us) {
  const Time deadline = after(timeout_us);
  for (;;) {
    const bool more = step();
    if (!events_.empty() || std::chrono::steady_clock::now() >= deadline) return;
    if (!more) wait(deadline);
  }
}

void Zmq::close_sockets() noexcept {
  for (Peer& other : peers_) {
    other.dealer.close();
    other.monitor.close();
  }
  router_.close();
  router_monitor_.close();
}

void Zmq::abort(int32_t /*exit_code*/) noexcept { close_sockets(); }

// Tells the others, and waits until they have received everything before that.
void Zmq::close(int64_t timeout_us) noexcept {
  constexpr int kLastAnswersMs = 200;
  const Time deadline = after(timeout_us);
  try {
    for (int32_t rank = 0; rank < ranks_; ++rank) {
      for (auto& [number, channel] : peer(rank).channels) channel.rooms.clear();
      if (peer(rank).dealer && !peer(rank).lost) tell(rank, Writer(Kind::kBye));
    }
    const auto waits = [](const Peer& other) { return other.dealer && !other.lost && !other.left && !other.seen; };
    while (std::any_of(peers_.begin(), peers_.end(), waits) && std::chrono::steady_clock::now() < deadline)
      if (!step()) wait(deadline);
    if (router_)
      router_.linger(timeout_us < 1000 ? 0 : static_cast<int>(std::min<int64_t>(timeout_us / 1000, kLastAnswersMs)));
  } catch (...) {  // out of memory: leaves without a word
  }
  close_sockets();
}

}  // namespace tenon_zmq

namespace {

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.zmq", "1.0.0", "Messages between the processes of a training over ZeroMQ", "Apache-2.0");
  plugin.comm(tn::comm_type<tenon_zmq::Zmq>());
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }

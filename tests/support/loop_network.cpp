// SPDX-License-Identifier: Apache-2.0
#include "tests/support/loop_network.h"

#include <algorithm>
#include <cstring>

namespace tenon_tests {

namespace {

using Us = std::chrono::microseconds;

// The last step of splitmix64: well mixed bits of a number.
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

LoopNetwork::LoopNetwork(int32_t ranks, const LoopScript& script, const LoopReach& reach)
    : script_(script), reach_(reach) {
  for (int32_t rank = 0; rank < ranks; ++rank) {
    ends_.push_back(std::make_unique<LoopEnd>());
    ends_.back()->peers.resize(static_cast<size_t>(ranks));
  }
}

void LoopNetwork::join(int32_t rank, int32_t silence_ms) {
  LoopEnd& joining = end(rank);
  joining.state = LoopEnd::State::kOpen;
  joining.thread = std::this_thread::get_id();
  joining.silence = std::chrono::milliseconds(silence_ms);
  joined_ = missing().empty();
  if (joined_) notify_all();
}

bool LoopNetwork::may_return(int32_t rank) const {
  for (size_t other = 0; other < ends_.size(); ++other)
    if (ends_[other]->state == LoopEnd::State::kOpen && !ends_[other]->peers[static_cast<size_t>(rank)].lost)
      return false;
  return rank != 0 && joined_ && ends_[static_cast<size_t>(rank)]->state == LoopEnd::State::kKilled;
}

void LoopNetwork::return_rank(int32_t rank, int32_t silence_ms) {
  std::erase_if(streams_, [=](const auto& stream) {
    return std::get<0>(stream.first) == rank || std::get<1>(stream.first) == rank;
  });
  LoopEnd& returning = end(rank);
  returning.events.clear();
  for (int32_t other = 0; other < ranks(); ++other) {
    const bool is_there = other != rank && end(other).state == LoopEnd::State::kOpen;
    peer(rank, other) = {other != rank && !is_there, std::nullopt};
    if (!is_there) continue;
    peer(other, rank) = {};
    end(other).events.push_back({TN_COMM_RETURNED, rank, 0, TN_OK, 0});
  }
  join(rank, silence_ms);
}

void LoopNetwork::withdraw(int32_t rank) { end(rank).state = LoopEnd::State::kAbsent; }

std::vector<int32_t> LoopNetwork::missing() const {
  std::vector<int32_t> ranks;
  for (size_t i = 0; i < ends_.size(); ++i)
    if (ends_[i]->state == LoopEnd::State::kAbsent) ranks.push_back(static_cast<int32_t>(i));
  return ranks;
}

void LoopNetwork::notify_all() {
  for (const auto& each : ends_) each->changed.notify_all();
}

LoopTime LoopNetwork::due(const Key& key, Stream& stream) const {
  const auto& [from, to, channel] = key;
  const uint64_t place = (static_cast<uint64_t>(from) << 40) + (static_cast<uint64_t>(to) << 20) + channel;
  const uint64_t drawn = mix(mix(mix(script_.seed) + place) + stream.number++);
  const auto span = static_cast<uint64_t>(script_.most_delay_us - script_.least_delay_us) + 1;
  const auto delay = Us(script_.least_delay_us + static_cast<int64_t>(drawn % span));
  stream.last_due = std::max(stream.last_due, std::chrono::steady_clock::now() + delay);
  return stream.last_due;
}

uint64_t LoopNetwork::send(int32_t rank, const tn_comm_message& message) {
  const uint64_t request = number_request(rank);
  ++end(rank).sends;
  if (peer(rank, message.peer).lost || end(message.peer).state == LoopEnd::State::kLeft) {
    finish(rank, message.peer, request, TN_IO);
    return request;
  }
  const Key key{rank, message.peer, message.channel};
  Stream& stream = streams_[key];
  stream.sent.push_back({request, static_cast<const std::byte*>(message.data), message.bytes, due(key, stream)});
  end(message.peer).changed.notify_all();  // its wait may end earlier now
  return request;
}

uint64_t LoopNetwork::sent(uint32_t channel) const {
  uint64_t messages = 0;
  for (const auto& [key, stream] : streams_)
    if (std::get<2>(key) == channel) messages += stream.number;
  return messages;
}

uint64_t LoopNetwork::receive(int32_t rank, const tn_comm_message& message) {
  const uint64_t request = number_request(rank);
  std::memset(message.data, 0xa5, message.bytes);
  if (peer(rank, message.peer).lost) {
    finish(rank, message.peer, request, TN_IO);
    return request;
  }
  streams_[Key{message.peer, rank, message.channel}].rooms.push_back(
      {request, static_cast<std::byte*>(message.data), message.bytes});
  end(message.peer).changed.notify_all();
  return request;
}

bool LoopNetwork::passable(int32_t from, int32_t to) const {
  const auto open = [&](int32_t rank) { return ends_[static_cast<size_t>(rank)]->state == LoopEnd::State::kOpen; };
  return open(from) && open(to) && reach_.between(from, to) && !peer(from, to).lost && !peer(to, from).lost;
}

void LoopNetwork::finish(int32_t rank, int32_t with, uint64_t request, tn_status status) {
  if (end(rank).state != LoopEnd::State::kOpen) return;
  end(rank).events.push_back({TN_COMM_DONE, with, request, status, 0});
  end(rank).changed.notify_all();
}

void LoopNetwork::fill(const Key& key, Stream& stream, const std::byte* data, uint64_t bytes) {
  const Room room = stream.rooms.front();
  stream.rooms.pop_front();
  const bool fits = room.bytes == bytes;
  if (fits && bytes != 0) std::memcpy(room.data, data, bytes);
  finish(std::get<1>(key), std::get<0>(key), room.request, fits ? TN_OK : TN_BAD_DATA);
}

void LoopNetwork::deliver(const Key& key, Stream& stream, LoopTime now) {
  const auto& [from, to, channel] = key;
  for (;;) {
    if (!stream.arrived.empty() && !stream.rooms.empty()) {
      fill(key, stream, stream.arrived.front().data(), stream.arrived.front().size());
      stream.arrived.pop_front();
      continue;
    }
    if (stream.sent.empty() || stream.sent.front().due > now || !passable(from, to)) return;
    const Sent sent = stream.sent.front();
    const bool eager = sent.bytes <= script_.eager_bytes;
    if (!eager && stream.rooms.empty()) return;
    stream.sent.pop_front();
    if (eager)
      stream.arrived.emplace_back(sent.data, sent.data + sent.bytes);
    else
      fill(key, stream, sent.data, sent.bytes);
    finish(from, to, sent.request, TN_OK);
  }
}

void LoopNetwork::move(LoopTime now) {
  if (!joined_) return;
  for (auto& [key, stream] : streams_) deliver(key, stream, now);
  for (int32_t rank = 0; rank < ranks(); ++rank)
    for (int32_t of = 0; of < ranks(); ++of)
      if (rank != of) notice(rank, of, now);
}

void LoopNetwork::notice(int32_t rank, int32_t of, LoopTime now) {
  LoopEnd& self = end(rank);
  LoopPeer& known = peer(rank, of);
  const bool stopped = reach_.stopped[static_cast<size_t>(rank)];
  if (self.state != LoopEnd::State::kOpen || known.lost || stopped) return;
  const bool killed = end(of).state == LoopEnd::State::kKilled;
  const bool cut = reach_.side[static_cast<size_t>(rank)] != reach_.side[static_cast<size_t>(of)];
  if (cut || (reach_.stopped[static_cast<size_t>(of)] && !killed)) {
    if (!known.silent_since) known.silent_since = now;
    if (self.silence.count() > 0 && now >= *known.silent_since + self.silence) lose(rank, of);
    return;
  }
  known.silent_since.reset();
  if (killed || peer(of, rank).lost)
    lose(rank, of);
  else if (end(of).state == LoopEnd::State::kLeft)
    part(rank, of);
}

void LoopNetwork::part(int32_t rank, int32_t of) {
  bool messages = false;
  for (auto& [key, stream] : streams_) {
    const auto& [from, to, channel] = key;
    if (from == of && to == rank) {
      messages = messages || !stream.arrived.empty();
      if (!stream.arrived.empty()) continue;
      for (const Room& room : stream.rooms) finish(rank, of, room.request, TN_IO);
      stream.rooms.clear();
    } else if (from == rank && to == of) {
      for (const Sent& sent : stream.sent) finish(rank, of, sent.request, TN_IO);
      stream.sent.clear();
    }
  }
  if (!messages) lose(rank, of);
}

void LoopNetwork::lose(int32_t rank, int32_t of) {
  peer(rank, of).lost = true;
  for (auto& [key, stream] : streams_) {
    const auto& [from, to, channel] = key;
    if (from == of && to == rank) {
      for (const Room& room : stream.rooms) finish(rank, of, room.request, TN_IO);
      stream.rooms.clear();
      stream.arrived.clear();
    } else if (from == rank && to == of) {
      for (const Sent& sent : stream.sent) finish(rank, of, sent.request, TN_IO);
      stream.sent.clear();
    }
  }
  end(rank).events.push_back({TN_COMM_LOST, of, 0, TN_OK, 0});
  notify_all();
}

LoopTime LoopNetwork::next(int32_t rank) const {
  LoopTime moment = LoopTime::max();
  for (const auto& [key, stream] : streams_) {
    const auto& [from, to, channel] = key;
    if ((from != rank && to != rank) || stream.sent.empty() || !passable(from, to)) continue;
    const Sent& sent = stream.sent.front();
    if (sent.bytes <= script_.eager_bytes || !stream.rooms.empty()) moment = std::min(moment, sent.due);
  }
  const LoopEnd& self = *ends_[static_cast<size_t>(rank)];
  for (const LoopPeer& known : self.peers)
    if (!known.lost && known.silent_since && self.silence.count() > 0)
      moment = std::min(moment, *known.silent_since + self.silence);
  return moment;
}

void LoopNetwork::kill(int32_t rank) {
  end(rank).state = LoopEnd::State::kKilled;
  for (auto& [key, stream] : streams_) {
    if (std::get<0>(key) == rank) stream.sent.clear();
    if (std::get<1>(key) == rank) stream.rooms.clear();
  }
  notify_all();
}

void LoopNetwork::leave(int32_t rank) {
  const bool killed = end(rank).state == LoopEnd::State::kKilled;
  kill(rank);
  if (!killed) end(rank).state = LoopEnd::State::kLeft;
}

}  // namespace tenon_tests

// SPDX-License-Identifier: Apache-2.0
#include "check/checks/comm_messages.h"

#include <algorithm>
#include <deque>
#include <iterator>

#include "check/checks/each.h"

namespace tenon::check {

namespace {

using MessageBytes = std::vector<unsigned char>;

constexpr unsigned char kUntouched = 0xC5;
constexpr uint64_t kLargeBytes = uint64_t{3} << 20;

// The bytes of a message, which sender and receiver know. At least one: data is not null even for 0 bytes.
MessageBytes message_bytes(int32_t from, int32_t to, uint32_t number, uint64_t bytes) {
  MessageBytes result(std::max<uint64_t>(bytes, 1));
  uint64_t state = static_cast<uint64_t>(from + 1) * 1'000'003 + static_cast<uint64_t>(to + 1) * 7919 + number;
  for (unsigned char& byte : result) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    byte = static_cast<unsigned char>(state >> 56);
  }
  return result;
}

// Room for a message, with other bytes behind it.
class Room {
 public:
  explicit Room(uint64_t bytes) : bytes_(bytes), memory_(bytes + kBehind, kUntouched) {}
  [[nodiscard]] void* data() { return memory_.data(); }

  // Throws Fault unless the room has this message.
  void expect(Rank& rank, const MessageBytes& message, const std::string& what) const {
    const auto end = memory_.begin() + static_cast<ptrdiff_t>(bytes_);
    const auto differs = std::mismatch(memory_.begin(), end, message.begin()).first;
    rank.expect(differs == end,
                "byte " + std::to_string(differs - memory_.begin()) + " of " + what + " is not the one that was sent");
    expect_untouched_behind(rank, what);
  }
  void expect_untouched_behind(Rank& rank, const std::string& what) const {
    rank.expect(std::all_of(memory_.begin() + static_cast<ptrdiff_t>(bytes_), memory_.end(),
                            [](unsigned char byte) { return byte == kUntouched; }),
                what + " writes behind its room of " + std::to_string(bytes_) + " bytes");
  }

 private:
  static constexpr size_t kBehind = 64;
  uint64_t bytes_;
  MessageBytes memory_;
};

struct Transfer {
  uint64_t request;
  int32_t peer;
  uint32_t number;
  std::string what;
};

}  // namespace

void expect_status(Rank& rank, tn_status got, tn_status expected, const std::string& what) {
  rank.expect(got == expected,
              what + " ends with \"" + tn_status_text(got) + "\"; expected \"" + tn_status_text(expected) + "\"");
}

void exchange(Rank& rank, const std::vector<int32_t>& ranks, const std::vector<uint64_t>& sizes) {
  OpenComm& comm = rank.comm();
  std::deque<MessageBytes> messages;
  std::deque<Room> rooms;
  std::vector<Transfer> sends, receives;
  for (const int32_t peer : ranks)
    for (uint32_t i = 0; i < sizes.size() && peer != rank.number(); ++i) {
      const uint32_t channel = i % 2 == 0 ? 0 : 1000 + i;
      const std::string what = std::to_string(sizes[i]) + " bytes ", who = "rank " + std::to_string(peer);
      const auto send = [&] {
        messages.push_back(message_bytes(rank.number(), peer, i, sizes[i]));
        sends.push_back(
            {comm.send(peer, channel, messages.back().data(), sizes[i]), peer, i, "a send of " + what + "to " + who});
      };
      if (rank.number() < peer) send();
      rooms.emplace_back(sizes[i]);
      receives.push_back({comm.receive(peer, channel, rooms.back().data(), sizes[i]), peer, i,
                          "a message of " + what + "from " + who});
      if (rank.number() > peer) send();
    }
  for (size_t i = 0; i < receives.size(); ++i) {
    const auto& [request, peer, number, what] = receives[i];
    expect_status(rank, comm.ended(request), TN_OK, what);
    rooms[i].expect(rank, message_bytes(peer, rank.number(), number, sizes[number]), what);
  }
  for (const Transfer& send : sends) expect_status(rank, comm.ended(send.request), TN_OK, send.what);
}

void check_messages(Context& context) {
  each(comm_attributes(context), text_of, [&](const json& attributes) {
    CommWorld world(context, 3, attributes);
    world.run([](Rank& rank) {
      const tn_comm_world is = rank.opened().world();
      rank.expect(is.rank == rank.number() && is.ranks == rank.ranks(),
                  "world says \"" + rank_text(is.rank, is.ranks) + "\" to " + rank_text(rank.number(), rank.ranks()));
      exchange(rank, {0, 1, 2}, {0, 1, 7, 4096, 65'537, std::min(kLargeBytes, is.most_bytes)});
      exchange(rank, {0, 1, 2}, {1, 0, 5});
      rank.meet(0, 3);
      rank.comm().close(Millis(1000));
    });
  });
}

namespace {

constexpr uint32_t kChannels[] = {1023, 0, 5};
constexpr uint32_t kOfChannel = 40;

// Sends the numbers from 0 on, channel after channel; or receives all those of the last channel first.
std::vector<uint64_t> begin_numbers(Rank& rank, std::vector<uint32_t>& values) {
  constexpr uint32_t kCount = std::size(kChannels);
  std::vector<uint64_t> requests;
  values.resize(size_t{kCount} * kOfChannel);
  if (rank.number() == 0)
    for (uint32_t i = 0; i < values.size(); ++i) {
      values[i] = i;
      requests.push_back(rank.comm().send(1, kChannels[i % kCount], &values[i], sizeof values[i]));
    }
  else
    for (uint32_t c = kCount; c-- > 0;)
      for (uint32_t i = 0; i < kOfChannel; ++i)
        requests.push_back(rank.comm().receive(0, kChannels[c], &values[i * kCount + c], sizeof values[0]));
  return requests;
}

}  // namespace

// Messages of a pair on one channel stay in order, whether their rooms are there before them or behind them.
void check_order(Context& context) {
  CommWorld world(context, 2);
  for (const int32_t first : {0, 1})
    world.run([&](Rank& rank) {
      OpenComm& comm = rank.opened();
      rank.meet(0, 2);
      if (rank.number() != first) rank.await(1, 1);
      std::vector<uint32_t> values;
      const std::vector<uint64_t> requests = begin_numbers(rank, values);
      rank.reach(1);
      for (const uint64_t request : requests) expect_status(rank, comm.ended(request), TN_OK, "a message of 4 bytes");
      for (uint32_t i = 0; i < values.size(); ++i)
        rank.expect(values[i] == i, "receive " + std::to_string(i / std::size(kChannels)) + " of channel " +
                                        std::to_string(kChannels[i % std::size(kChannels)]) + " gets message " +
                                        std::to_string(values[i]) + "; expected " + std::to_string(i));
      rank.meet(2, 2);
    });
}

// Requests end one by one where there is room for one event.
void check_events(Context& context) {
  constexpr uint32_t kCount = 100;
  CommWorld world(context, 2);
  world.run([](Rank& rank) {
    OpenComm& comm = rank.opened();
    const int32_t peer = 1 - rank.number();
    std::vector<uint32_t> sent(kCount), got(kCount);
    std::vector<uint64_t> requests;
    for (uint32_t i = 0; i < kCount; ++i) {
      sent[i] = i;
      requests.push_back(comm.receive(peer, i, &got[i], sizeof got[i]));
      requests.push_back(comm.send(peer, i, &sent[i], sizeof sent[i]));
    }
    const auto all_ended = [&] {
      return std::all_of(requests.begin(), requests.end(), [&](uint64_t each) { return comm.has_ended(each); });
    };
    for (int calls = 0; !all_ended(); ++calls) {
      rank.expect(calls < 5000, "200 requests do not end in 5000 calls with room for one event each");
      (void)comm.progress(Millis(1), 1);
    }
    for (const uint64_t request : requests) expect_status(rank, comm.ended(request), TN_OK, "a request");
    rank.expect(sent == got, "a message has other bytes than were sent");
    rank.meet(0, 2);
  });
}

// A message of other bytes than its room: nothing is written behind it, and the next one is not disturbed.
void check_room(Context& context) {
  constexpr uint64_t kBytes[] = {8, 24, 0, 16, 100'000, 8, 1, 12};
  constexpr uint64_t kRooms[] = {16, 24, 4, 16, 40, 8, 0, 12};
  CommWorld world(context, 2);
  world.run([&](Rank& rank) {
    OpenComm& comm = rank.opened();
    std::deque<MessageBytes> messages;
    std::deque<Room> rooms;
    std::vector<uint64_t> requests;
    for (uint32_t i = 0; i < std::size(kBytes); ++i) {
      messages.push_back(message_bytes(0, 1, i, kBytes[i]));
      rooms.emplace_back(kRooms[i]);
      requests.push_back(rank.number() == 0 ? comm.send(1, 3, messages[i].data(), kBytes[i])
                                            : comm.receive(0, 3, rooms[i].data(), kRooms[i]));
    }
    for (uint32_t i = 0; i < requests.size(); ++i) {
      const tn_status status = comm.ended(requests[i]);
      const bool fits = kBytes[i] == kRooms[i];
      const std::string what =
          "a message of " + std::to_string(kBytes[i]) + " bytes with room for " + std::to_string(kRooms[i]);
      if (rank.number() == 1 || fits) expect_status(rank, status, fits ? TN_OK : TN_BAD_DATA, what);
      if (rank.number() == 0) continue;
      if (fits) rooms[i].expect(rank, messages[i], what);
      rooms[i].expect_untouched_behind(rank, what);
    }
    rank.meet(0, 2);
  });
}

// Transfers begin, whatever the peer does.
void check_begin(Context& context) {
  constexpr uint32_t kCount = 4;
  CommWorld world(context, 2);
  world.run([](Rank& rank) {
    OpenComm& comm = rank.opened();
    const uint64_t bytes = std::min(kLargeBytes, comm.world().most_bytes);
    std::deque<MessageBytes> messages;
    std::deque<Room> rooms;
    std::vector<uint64_t> requests;
    rank.meet(0, 2);
    if (rank.number() == 1) rank.await(1, 1);  // without progress
    for (uint32_t i = 0; i < kCount; ++i) {
      messages.push_back(message_bytes(0, 1, i, bytes));
      rooms.emplace_back(bytes);
      requests.push_back(rank.number() == 0 ? comm.send(1, 0, messages[i].data(), bytes)
                                            : comm.receive(0, 0, rooms[i].data(), bytes));
      (void)comm.progress(Millis(20));
    }
    rank.reach(1);
    for (uint32_t i = 0; i < kCount; ++i) {
      expect_status(rank, comm.ended(requests[i]), TN_OK, "a large message");
      if (rank.number() == 1) rooms[i].expect(rank, messages[i], "a large message");
    }
    rank.meet(2, 2);
  });
}

}  // namespace tenon::check

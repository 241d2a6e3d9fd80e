// SPDX-License-Identifier: Apache-2.0
#include "tests/comms/contract.h"

#include <optional>
#include <tuple>

namespace tenon_tests {

namespace {

using Bytes = std::vector<uint8_t>;

void expect(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

// The content of message `number` from one rank to another on a channel.
Bytes content(int32_t from, int32_t to, uint32_t channel, size_t number, size_t bytes) {
  uint32_t state = static_cast<uint32_t>(from) * 7919 + static_cast<uint32_t>(to) * 104'729 + channel * 31 +
                   static_cast<uint32_t>(number) * 65'537 + 1;
  Bytes values(bytes);
  for (uint8_t& value : values) {
    state = state * 1'664'525 + 1'013'904'223;
    value = static_cast<uint8_t>(state >> 24);
  }
  return values;
}

struct Transfer {
  uint64_t request;
  Bytes* data;
  Bytes expected;  // of a receive
};

// Each rank sends several messages to each other one on several channels. On odd channels the receives come late.
void exchange(Rank& rank, const std::vector<size_t>& sizes, const std::vector<uint32_t>& channels) {
  const tn_comm_world world = rank.world();
  std::vector<std::unique_ptr<Bytes>> buffers;
  std::vector<Transfer> transfers;
  const auto post = [&](bool send, int32_t peer, uint32_t channel, size_t number) {
    const int32_t from = send ? world.rank : peer;
    const int32_t to = send ? peer : world.rank;
    Bytes expected = content(from, to, channel, number, sizes[number]);
    buffers.push_back(std::make_unique<Bytes>(send ? expected : Bytes(sizes[number], 0xee)));
    Bytes* data = buffers.back().get();
    transfers.push_back(
        {send ? rank.send(peer, channel, *data) : rank.receive(peer, channel, *data), data, std::move(expected)});
  };
  for (const bool late : {false, true}) {
    for (const uint32_t channel : channels) {
      const bool receives = (channel % 2 == 1) == late;
      for (int32_t peer = 0; peer < world.ranks; ++peer)
        for (size_t number = 0; number < sizes.size() && peer != world.rank; ++number) {
          if (receives) post(false, peer, channel, number);
          if (!late) post(true, peer, channel, number);
        }
    }
    if (!late) rank.progress(1000);
  }
  for (const Transfer& transfer : transfers) {
    const tn_status status = rank.wait(transfer.request);
    expect(status == TN_OK, "a request of " + std::to_string(transfer.expected.size()) + " bytes ended with status " +
                                std::to_string(status) + ", " + std::to_string(rank.lost.size()) + " ranks are lost");
    expect(*transfer.data == transfer.expected,
           "a message of " + std::to_string(transfer.expected.size()) + " bytes is another one");
  }
}

// A message of other bytes than its room is dropped, and the next one arrives.
void check_sizes(Rank& rank) {
  const tn_comm_world world = rank.world();
  const int32_t next = (world.rank + 1) % world.ranks;
  const int32_t before = (world.rank + world.ranks - 1) % world.ranks;
  Bytes sent(10, 1);
  Bytes right(10, 0);
  Bytes small(9, 0);
  Bytes great(11, 0);
  const uint64_t requests[] = {rank.receive(before, 3, small), rank.receive(before, 3, great),
                               rank.receive(before, 3, right)};
  const uint64_t sends[] = {rank.send(next, 3, sent), rank.send(next, 3, sent), rank.send(next, 3, sent)};
  expect(rank.wait(requests[0]) == TN_BAD_DATA, "a message was put into a room that is too small");
  expect(rank.wait(requests[1]) == TN_BAD_DATA, "a message was put into a room that is too large");
  expect(rank.wait(requests[2]) == TN_OK && right == sent, "the message behind two of a wrong size is lost");
  for (const uint64_t request : sends) expect(rank.wait(request) == TN_OK, "a send did not end well");
}

void check_wake(Rank& rank) {
  using std::chrono::steady_clock;
  const auto begin = steady_clock::now();
  for (const int64_t timeout_us : {int64_t{0}, int64_t{100}, int64_t{20'000}})
    expect(rank.progress(timeout_us) == TN_OK, "progress fails without messages");
  expect(steady_clock::now() - begin < std::chrono::seconds(5), "progress waits longer than it may");
  expect(rank.woken == 0, "an event of a wake that was not called");
  rank.wake();
  expect(rank.until([&] { return rank.woken != 0; }), "a wake before progress does not end it");
  rank.progress(1000);
  const int woken = rank.woken;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    rank.wake();
  });
  const auto middle = steady_clock::now();
  while (rank.woken == woken && steady_clock::now() - middle < std::chrono::seconds(10)) rank.progress(10 * kSecond);
  other.join();
  expect(steady_clock::now() - middle < std::chrono::seconds(5), "a wake does not end a progress that waits");
}

void check_refusals(Rank& rank) {
  const tn_comm_world world = rank.world();
  uint64_t request = 0;
  uint8_t byte = 0;
  const int32_t other = world.rank == 0 ? 1 : 0;
  for (const int32_t peer : {-1, world.rank, world.ranks})
    expect(rank.try_transfer(true, peer, 0, &byte, 1, &request) != TN_OK,
           "a message to rank " + std::to_string(peer) + " was taken");
  expect(rank.try_transfer(false, other, 1024, &byte, 1, &request) != TN_OK, "channel 1024 was taken");
  expect(rank.try_transfer(true, other, 0, &byte, world.most_bytes + 1, &request) != TN_OK,
         "more than most_bytes were taken");
}

}  // namespace

void meet(Rank& rank) { exchange(rank, {0}, {1000}); }

void check_contract(Rank& rank, const ContractSize& size) {
  const tn_comm_world world = rank.world();
  expect(world.rank >= 0 && world.rank < world.ranks, "a rank outside of its world");
  expect(world.most_bytes >= (uint64_t{1} << 20), "most_bytes is below 1 MiB");
  check_refusals(rank);
  exchange(rank, {0, 1, 1000, 5000, 70'000, 3}, {0, 7, 512, 1023});
  exchange(rank, {static_cast<size_t>(std::min(size.large, world.most_bytes))}, {2});
  check_sizes(rank);
  check_wake(rank);
  for (int i = 0; i < 20; ++i) meet(rank);
  expect(rank.lost.empty(), "a rank counts as lost");
  meet(rank);  // from here on ranks may leave
}

}  // namespace tenon_tests

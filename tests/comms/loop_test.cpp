// The communicator of tests keeps the contract of tenon/draft/comm.h. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <functional>
#include <map>
#include <numeric>
#include <thread>

#include "tests/comms/contract.h"
#include "tests/comms/threads.h"
#include "tests/support/loop_comm.h"

namespace {

using tenon_tests::check_contract;
using tenon_tests::kSecond;
using tenon_tests::LoopFault;
using tenon_tests::LoopScript;
using tenon_tests::LoopWorld;
using tenon_tests::Opening;
using tenon_tests::Rank;
using tenon_tests::run_ranks;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::unique_ptr<Opening> opening_of(const LoopWorld& world, int32_t rank, int32_t ranks, int32_t silence_ms = 0) {
  auto opening = std::make_unique<Opening>(*world.type(), rank, ranks);
  opening->open.silence_ms = silence_ms;
  return opening;
}

void exchange_all(LoopWorld& world, int32_t ranks) {
  run_ranks(ranks, [&](int32_t me) {
    Rank rank(opening_of(world, me, ranks));
    check_contract(rank);
  });
  // The suite sends to itself, to ranks that are not there, and more than may be.
  EXPECT_EQ(world.misuses().size(), static_cast<size_t>(ranks) * 5);
}

TEST(LoopComm, keeps_the_contract) {
  LoopWorld world(3);
  exchange_all(world, 3);
}

TEST(LoopComm, keeps_it_with_delays_and_idle_calls) {
  LoopScript script;
  script.most_delay_us = 3000;
  script.idle_one_in = 3;
  script.eager_bytes = 0;
  LoopWorld world(4, script);
  exchange_all(world, 4);
}

// The order in which six messages, one on each channel, arrive. With the seeds of the test they are 40 ms apart.
std::vector<uint64_t> arrivals(uint64_t seed) {
  LoopScript script;
  script.seed = seed;
  script.most_delay_us = 300'000;
  LoopWorld world(2, script);
  std::vector<uint64_t> order;
  run_ranks(2, [&](int32_t me) {
    std::vector<std::vector<int32_t>> values(6, std::vector<int32_t>(1, me));
    Rank rank(opening_of(world, me, 2));
    for (uint32_t channel = 0; channel < 6; ++channel)
      me == 0 ? rank.send(1, channel, values[channel]) : rank.receive(0, channel, values[channel]);
    EXPECT_TRUE(rank.until([&] { return rank.order.size() == 6; }));
    if (me == 1) order = rank.order;
  });
  return order;
}

TEST(LoopComm, draws_the_order_between_channels_from_the_seed) {
  const std::vector<uint64_t> order = arrivals(253);
  EXPECT_EQ(order, arrivals(253));
  EXPECT_NE(order, arrivals(620));
}

TEST(LoopComm, reads_a_send_late_and_scribbles_over_room) {
  LoopScript script;
  script.least_delay_us = script.most_delay_us = 50'000;
  LoopWorld world(2, script);
  run_ranks(2, [&](int32_t me) {
    Rank rank(opening_of(world, me, 2));
    std::vector<int32_t> values(3, me);
    if (me == 0) {
      const uint64_t request = rank.send(1, 0, values);
      values[1] = 7;  // against the contract
      EXPECT_EQ(rank.wait(request), TN_OK);
    } else {
      const uint64_t request = rank.receive(0, 0, values);
      EXPECT_NE(values[0], 1);
      EXPECT_EQ(rank.wait(request), TN_OK);
      EXPECT_THAT(values, ElementsAre(0, 7, 0));
    }
  });
}

TEST(LoopComm, ends_a_receive_with_other_bytes_as_bad_data_and_goes_on) {
  LoopWorld world(2);
  run_ranks(2, [&](int32_t me) {
    Rank rank(opening_of(world, me, 2));
    std::vector<int32_t> first(3, 1);
    std::vector<int32_t> second(2, me == 0 ? 5 : 0);
    std::vector<int32_t> room(4, 0);
    if (me == 0) {
      const uint64_t requests[] = {rank.send(1, 9, first), rank.send(1, 9, second)};
      for (const uint64_t request : requests) EXPECT_EQ(rank.wait(request), TN_OK);
    } else {
      const uint64_t requests[] = {rank.receive(0, 9, room), rank.receive(0, 9, second)};
      EXPECT_EQ(rank.wait(requests[0]), TN_BAD_DATA);
      EXPECT_EQ(rank.wait(requests[1]), TN_OK);
      EXPECT_THAT(second, ElementsAre(5, 5));
    }
  });
}

TEST(LoopComm, bounds_progress_and_wakes_it) {
  LoopWorld world(2);
  run_ranks(2, [&](int32_t me) {
    Rank rank(opening_of(world, me, 2));
    EXPECT_EQ(rank.progress(0), TN_OK);
    EXPECT_EQ(rank.progress(1000), TN_OK);
    EXPECT_EQ(rank.woken, 0);
    rank.wake();
    rank.wake();
    EXPECT_EQ(rank.progress(20 * kSecond), TN_OK);
    EXPECT_EQ(rank.woken, 1);
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      rank.wake();
    });
    EXPECT_TRUE(rank.until([&] { return rank.woken == 2; }));
    other.join();
  });
}

TEST(LoopComm, a_loss_ends_requests_and_the_others_go_on) {
  LoopScript script;
  script.faults.push_back({LoopFault::Kind::kLose, 2, 1, {}});
  LoopWorld world(3, script);
  run_ranks(3, [&](int32_t me) {
    Rank rank(opening_of(world, me, 3));
    std::vector<int32_t> values(10'000, me);
    if (me == 2) {
      EXPECT_EQ(rank.wait(rank.send(0, 0, values)), TN_OK);
      uint64_t request = 0;
      EXPECT_EQ(rank.try_transfer(true, 1, 0, values.data(), 4, &request), TN_IO);
      EXPECT_EQ(rank.progress(0), TN_IO);
      EXPECT_THAT(rank.message(), HasSubstr("rank 2"));
      return;
    }
    const uint64_t request = rank.receive(2, 0, values);
    EXPECT_EQ(rank.wait(request), me == 0 ? TN_OK : TN_IO);
    EXPECT_TRUE(rank.until([&] { return !rank.lost.empty(); }));
    EXPECT_EQ(rank.wait(rank.receive(2, 0, values)), TN_IO);
    EXPECT_EQ(rank.wait(rank.send(2, 0, values)), TN_IO);
    std::vector<int32_t> mine(1, me);
    std::vector<int32_t> theirs(1, -1);
    const uint64_t sent = rank.send(1 - me, 5, mine);
    EXPECT_EQ(rank.wait(rank.receive(1 - me, 5, theirs)), TN_OK);
    EXPECT_EQ(rank.wait(sent), TN_OK);
    EXPECT_THAT(theirs, ElementsAre(1 - me));
    EXPECT_EQ(rank.lost.front(), 2);
  });
  EXPECT_THAT(world.misuses(), IsEmpty());
}

TEST(LoopComm, a_stopped_rank_is_lost_after_the_silence_and_loses_the_others) {
  LoopScript script;
  script.faults.push_back({LoopFault::Kind::kStop, 1, 0, {}});
  LoopWorld world(2, script);
  run_ranks(2, [&](int32_t me) {
    Rank rank(opening_of(world, me, 2, 30));
    std::vector<int32_t> values(1, me);
    if (me == 0) {
      EXPECT_EQ(rank.wait(rank.receive(1, 0, values)), TN_IO);
      EXPECT_TRUE(rank.until([&] { return !rank.lost.empty(); }));
      world.resume(1);
    } else {
      EXPECT_EQ(rank.wait(rank.send(0, 0, values)), TN_IO);  // blocks until resume
      EXPECT_TRUE(rank.until([&] { return !rank.lost.empty(); }));
      EXPECT_THAT(rank.lost, ElementsAre(0));
    }
  });
}

TEST(LoopComm, without_silence_a_cut_delays_and_with_it_both_sides_lose) {
  for (const int32_t silence_ms : {0, 30}) {
    LoopWorld world(3);
    std::barrier all_open(3, [&]() noexcept { world.cut({2}); });
    run_ranks(3, [&](int32_t me) {
      Rank rank(opening_of(world, me, 3, silence_ms));
      all_open.arrive_and_wait();
      std::vector<int32_t> values(1, me);
      if (silence_ms > 0) {
        // A rank that has lost rank 2 leaves, so the other one may lose it first.
        const auto has_lost = [&](int32_t other) { return std::count(rank.lost.begin(), rank.lost.end(), other) == 1; };
        EXPECT_TRUE(rank.until([&] { return me == 2 ? has_lost(0) && has_lost(1) : has_lost(2); }));
      } else if (me == 0) {
        const uint64_t request = rank.receive(2, 0, values);
        EXPECT_EQ(rank.progress(kSecond / 20), TN_OK);
        EXPECT_EQ(rank.done.count(request), 0u);
        world.heal();
        EXPECT_EQ(rank.wait(request), TN_OK);
        EXPECT_THAT(values, ElementsAre(2));
      } else if (me == 2) {
        EXPECT_EQ(rank.wait(rank.send(0, 0, values)), TN_OK);
      }
    });
  }
}

TEST(LoopComm, messages_of_a_rank_that_left_arrive_before_its_loss) {
  LoopWorld world(2);
  std::atomic<bool> left{false};
  run_ranks(2, [&](int32_t me) {
    Rank rank(opening_of(world, me, 2));
    std::vector<int32_t> values(2, me == 0 ? 8 : 0);
    if (me == 0) {
      EXPECT_EQ(rank.wait(rank.send(1, 0, values)), TN_OK);
      rank.close();
      left = true;
      return;
    }
    while (!left) std::this_thread::yield();
    EXPECT_EQ(rank.progress(0), TN_OK);
    EXPECT_THAT(rank.lost, IsEmpty());
    EXPECT_EQ(rank.wait(rank.receive(0, 0, values)), TN_OK);
    EXPECT_THAT(values, ElementsAre(8, 8));
    EXPECT_EQ(rank.wait(rank.receive(0, 0, values)), TN_IO);
    EXPECT_TRUE(rank.until([&] { return !rank.lost.empty(); }));
  });
}

TEST(LoopComm, an_abort_ends_one_rank_or_all) {
  for (const uint32_t traits : {uint32_t{TN_COMM_SURVIVES}, uint32_t{0}}) {
    LoopScript script;
    script.traits = traits;
    LoopWorld world(2, script);
    run_ranks(2, [&](int32_t me) {
      Rank rank(opening_of(world, me, 2));
      if (me == 0) return rank.abort(201);
      if (traits == 0)
        EXPECT_FALSE(rank.until([] { return false; }));
      else
        EXPECT_TRUE(rank.until([&] { return !rank.lost.empty(); }));
    });
    EXPECT_EQ(world.abort_code(), 201);
  }
}

TEST(LoopComm, open_names_the_missing_ranks_the_wrong_world_and_cancels) {
  LoopWorld world(3);
  const tn_comm_type& type = *world.type();
  void* comm = nullptr;
  Opening late(*world.type(), 1, 3);
  late.open.deadline_ms = 10;
  EXPECT_EQ(type.open(&late.open, &comm), TN_IO);
  EXPECT_EQ(late.message, "ranks 0, 2 did not connect within 10 ms");
  Opening other(*world.type(), 0, 4);
  EXPECT_EQ(type.open(&other.open, &comm), TN_INVALID);
  EXPECT_EQ(other.message, "the world has 3 ranks, not 4");
  Opening cancelled(*world.type(), 0, 3);
  const volatile int32_t cancel = 1;
  cancelled.open.cancel = &cancel;
  EXPECT_EQ(type.open(&cancelled.open, &comm), TN_CANCELLED);
  EXPECT_EQ(comm, nullptr);
}

TEST(LoopComm, counts_strangers_of_other_secrets_and_epochs) {
  LoopWorld world(2);
  const uint8_t secret[] = {1, 2, 3};
  const tn_comm_type& type = *world.type();
  std::atomic<int> strangers{0};
  run_ranks(4, [&](int32_t thread) {
    Opening opening(*world.type(), thread % 2, 2);
    opening.open.secret = secret;
    opening.open.secret_bytes = 3;
    void* comm = nullptr;
    if (thread >= 2) {  // another epoch, and another secret
      if (thread == 3) opening.open.epoch = 1;
      if (thread == 2) opening.open.secret_bytes = 2;
      opening.open.rank = 1;
      opening.open.deadline_ms = 20;
      EXPECT_EQ(type.open(&opening.open, &comm), TN_IO);
      ++strangers;
      return;
    }
    ASSERT_EQ(type.open(&opening.open, &comm), TN_OK) << opening.message;
    while (strangers < 2) std::this_thread::yield();
    tn_comm_world described{};
    described.size = sizeof described;
    EXPECT_EQ(type.world(comm, &described), TN_OK);
    EXPECT_EQ(described.traits, uint32_t{TN_COMM_SURVIVES | TN_COMM_AUTHENTICATED});
    EXPECT_EQ(described.refused, thread == 0 ? 2u : 0u);
    type.close(comm, kSecond);
  });
}

TEST(LoopComm, reports_misuse) {
  LoopWorld world(2);
  run_ranks(2, [&](int32_t me) {
    Rank rank(opening_of(world, me, 2));
    if (me == 1) return;
    uint64_t request = 0;
    int32_t value = 0;
    EXPECT_EQ(rank.try_transfer(true, 0, 0, &value, 4, &request), TN_MISUSE);
    EXPECT_EQ(rank.try_transfer(true, 1, 1024, &value, 4, &request), TN_MISUSE);
    EXPECT_EQ(rank.try_transfer(false, 1, 0, nullptr, 0, &request), TN_MISUSE);
    EXPECT_EQ(rank.try_transfer(true, 1, 0, &value, (uint64_t{1} << 20) + 1, &request), TN_MISUSE);
    std::thread([&] { EXPECT_EQ(rank.progress(0), TN_MISUSE); }).join();
  });
  EXPECT_EQ(world.misuses().size(), 5u);
}

}  // namespace

// What the processes of a team tell each other, here threads. SPDX-License-Identifier: Apache-2.0
#include "host/comm/team.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <functional>

#include "core/error.h"
#include "host/comm/secret.h"
#include "tests/support/loop_team.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

namespace {

using namespace tenon::host;
using tenon::core::Error;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Team, KnowsItsPlace) {
  LoopTeam ranks(3);
  std::atomic<int64_t> sum{0};
  EXPECT_THAT(ranks.run([&](Team& team) {
    EXPECT_EQ(team.processes(), 3);
    sum += team.rank();
  }),
              Each(""));
  EXPECT_EQ(sum, 3);
}

TEST(Team, ExchangesBytesInTheirOrderWhateverOvertakes) {
  LoopTeam ranks(3, disordered());
  EXPECT_THAT(ranks.run([&](Team& team) {
    for (const uint64_t bytes : {0UL, 1UL, 5000UL, 256UL << 10U, (256UL << 10U) + 1, (9UL << 20U) + 7}) {
      std::vector<std::vector<unsigned char>> first(3), second(3), sent(3);
      std::vector<Team::Outgoing> outgoing;
      std::vector<Team::Incoming> incoming;
      for (int64_t other = 0; other < 3; ++other) {
        if (other == team.rank()) continue;
        const auto place = static_cast<size_t>(other);
        sent[place].assign(bytes, static_cast<unsigned char>(10 * team.rank() + other));
        first[place].resize(bytes), second[place].resize(3);
        outgoing.push_back({other, sent[place].data(), bytes});
        outgoing.push_back({other, "end", 3});
        incoming.push_back({other, first[place].data(), bytes});
        incoming.push_back({other, second[place].data(), 3});
      }
      team.exchange(outgoing, incoming);
      for (int64_t other = 0; other < 3; ++other) {
        if (other == team.rank()) continue;
        const auto place = static_cast<size_t>(other);
        const auto expected = static_cast<unsigned char>(10 * other + team.rank());
        EXPECT_EQ(first[place], std::vector<unsigned char>(bytes, expected));
        EXPECT_EQ(std::memcmp(second[place].data(), "end", 3), 0);
      }
    }
  }),
              Each(""));
}

TEST(Team, GathersAndBroadcasts) {
  LoopTeam ranks(4, disordered());
  EXPECT_THAT(ranks.run([&](Team& team) {
    for (int32_t round = 0; round < 20; ++round) {
      std::vector<int32_t> all(4);
      all[static_cast<size_t>(team.rank())] = round + static_cast<int32_t>(team.rank());
      team.gather(std::as_writable_bytes(std::span(all)));
      EXPECT_THAT(all, ElementsAre(round, round + 1, round + 2, round + 3));
      int32_t number = team.rank() == 0 ? round : -1;
      team.broadcast(std::as_writable_bytes(std::span(&number, 1)));
      EXPECT_EQ(number, round);
    }
  }),
              Each(""));
}

// Waits until something is so, at most half a minute.
bool comes(const std::function<bool()>& so) {
  for (int i = 0; i < 30'000 && !so(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return so();
}

TEST(Team, AnyThreadSeesForWhomAProcessWaits) {
  LoopTeam ranks(3);
  std::atomic<bool> is_seen{false};
  EXPECT_THAT(ranks.run([&](Team& team) {
    EXPECT_EQ(team.world().waits_for(), -1);
    std::thread observer;
    if (team.rank() == 0)
      observer = std::thread([&] {
        EXPECT_TRUE(comes([&] { return team.world().waits_for() == 2; })) << "the bytes of process 1 are there";
        is_seen = true;
      });
    if (team.rank() == 2) {
      EXPECT_TRUE(comes([&] { return is_seen.load(); }));
    }
    std::vector<int32_t> all(3);
    team.gather(std::as_writable_bytes(std::span(all)));
    EXPECT_EQ(team.world().waits_for(), -1);
    if (observer.joinable()) observer.join();
  }),
              Each(""));
}

TEST(Team, AnyThreadSeesWhoDoesNotTakeItsBytes) {
  LoopTeam ranks(2);
  std::atomic<bool> is_seen{false};
  EXPECT_THAT(ranks.run([&](Team& team) {
    std::vector<std::byte> bytes(1U << 20U);  // more than the communicator takes without its receiver
    if (team.rank() == 1) {
      EXPECT_TRUE(comes([&] { return is_seen.load(); }));
      team.broadcast(bytes);
      return;
    }
    std::thread observer([&] {
      EXPECT_TRUE(comes([&] { return team.world().waits_for() == 1; }));
      is_seen = true;
    });
    team.broadcast(bytes);
    observer.join();
  }),
              Each(""));
}

TEST(Team, WaitsForNobodyOnceItIsBroken) {
  LoopTeam ranks(2);
  const std::vector<std::string> errors = ranks.run([](Team& team) {
    if (team.rank() == 1) return;
    std::vector<int32_t> all(2);
    EXPECT_THROW(team.gather(std::as_writable_bytes(std::span(all))), Error);
    EXPECT_EQ(team.world().waits_for(), -1);
  });
  EXPECT_THAT(errors, ElementsAre("", ""));
}

// What goes from each of two processes to the other.
struct Both {
  explicit Both(const Team& team) : other(1 - team.rank()), sent(300'000, std::byte{7}), received(sent.size()) {}
  [[nodiscard]] Team::Transfers begin(Team& team, uint32_t channel) {
    const Team::Outgoing outgoing{other, sent.data(), sent.size()};
    const Team::Incoming incoming{other, received.data(), received.size()};
    return team.begin({&outgoing, 1}, {&incoming, 1}, channel);
  }
  int64_t other;
  std::vector<std::byte> sent, received;
};

TEST(Team, TransfersOfSeveralChannelsGoOnWhileTheirProcessDoesOtherThings) {
  LoopTeam ranks(2, disordered());
  EXPECT_THAT(ranks.run([&](Team& team) {
    for (int round = 0; round < 10; ++round) {
      Both first(team), second(team);
      const bool in_order = team.rank() == 0;
      Team::Transfers one = in_order ? first.begin(team, 1) : second.begin(team, 2);
      Team::Transfers two = in_order ? second.begin(team, 2) : first.begin(team, 1);
      std::vector<int64_t> all(2, round);
      team.gather(std::as_writable_bytes(std::span(all)));
      two.wait();
      one = std::move(two);  // waits for what it replaces
      EXPECT_TRUE(one.are_done());
      for (const Both* each : {&first, &second}) EXPECT_EQ(each->received, each->sent);
    }
  }),
              Each(""));
}

TEST(Team, BeginsWithoutItsPeer) {
  LoopTeam ranks(2);
  std::atomic<bool> has_begun{false};
  EXPECT_THAT(ranks.run([&](Team& team) {
    Both both(team);
    if (team.rank() == 1)
      while (!has_begun) std::this_thread::yield();
    const Team::Transfers transfers = both.begin(team, 3);
    has_begun = true;
  }),
              Each(""));
}

TEST(Team, TransfersEndBeforeTheirMemory) {
  LoopTeam ranks(2, disordered());
  EXPECT_THAT(ranks.run([&](Team& team) {
    Both both(team);
    { const Team::Transfers transfers = both.begin(team, 1); }
    EXPECT_EQ(both.received, both.sent);
  }),
              Each(""));
}

TEST(Team, TransfersFailWithAProcessThatIsLost) {
  LoopTeam ranks(2);
  const std::vector<std::string> errors = ranks.run([](Team& team) {
    if (team.rank() == 1) return;
    Both both(team);
    Team::Transfers transfers = both.begin(team, 1);
    EXPECT_THROW(transfers.wait(), Error);
    EXPECT_FALSE(transfers.are_done());
    transfers.wait();
  });
  EXPECT_THAT(errors, ElementsAre(HasSubstr("process 1 is lost"), ""));
}

TEST(Team, ALeaderThatLeavesHasToldTheOthers) {
  LoopTeam ranks(3, disordered());
  EXPECT_THAT(ranks.run([](Team& team) {
    for (int32_t round = 0; round < 20; ++round) {
      int32_t number = team.rank() == 0 ? round : -1;
      team.broadcast(std::as_writable_bytes(std::span(&number, 1)));
      EXPECT_EQ(number, round);
    }
  }),
              Each(""));
}

void gather_for_ever(Team& team) {
  std::vector<int32_t> all(static_cast<size_t>(team.processes()));
  while (true) team.gather(std::as_writable_bytes(std::span(all)));
}

TEST(Team, NamesAProcessThatIsLost) {
  LoopScript script;
  script.faults = {{LoopFault::Kind::kLose, 2, 30, {}}};
  LoopTeam ranks(3, script);
  const std::vector<std::string> errors = ranks.run(gather_for_ever);
  EXPECT_THAT(errors[0], HasSubstr("process 2 is lost"));
  EXPECT_THAT(errors[1], HasSubstr("process 2 is lost"));
  EXPECT_NE(errors[2], "");
}

TEST(Team, NamesAProcessThatLeaves) {
  LoopTeam ranks(3);
  const std::vector<std::string> errors = ranks.run([](Team& team) {
    if (team.rank() != 1) gather_for_ever(team);
  });
  EXPECT_THAT(errors, ElementsAre(HasSubstr("process 1 is lost"), "", HasSubstr("process 1 is lost")));
}

TEST(Team, StaysBroken) {
  LoopTeam ranks(2);
  const std::vector<std::string> errors = ranks.run([](Team& team) {
    if (team.rank() == 1) return;
    EXPECT_THROW(gather_for_ever(team), Error);
    gather_for_ever(team);
  });
  EXPECT_THAT(errors, ElementsAre(HasSubstr("process 1 is lost"), ""));
}

TEST(Team, OtherSizesAreAnotherJob) {
  LoopTeam ranks(2);
  const std::vector<std::string> errors = ranks.run([](Team& team) {
    std::vector<std::byte> bytes(team.rank() == 0 ? 8 : 9);
    team.broadcast(bytes);
    gather_for_ever(team);
  });
  EXPECT_THAT(errors[1], HasSubstr("do not exchange the same bytes: they run different jobs"));
  EXPECT_NE(errors[0], "");
}

TEST(Team, EndsWithTheHost) {
  LoopTeam ranks(2);
  std::thread timer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ranks.ending() = true;
  });
  const std::vector<std::string> errors = ranks.run([](Team& team) {
    std::byte byte{};
    const std::vector<Team::Incoming> never = {{1 - team.rank(), &byte, 1}};
    team.exchange({}, never);
  });
  timer.join();
  EXPECT_THAT(errors, testing::Contains(HasSubstr("the host ends")));
  EXPECT_THAT(errors, testing::Not(testing::Contains("")));
}

TEST(Secret, ComesFromAFileOfItsOwnerAlone) {
  const TemporaryFolder folder;
  const std::string path = folder.file("secret");
  std::ofstream(path) << "0123456789abcdef0123456789abcdef";
  chmod(path.c_str(), 0600);
  EXPECT_EQ(read_secret(path).size(), 32U);
  EXPECT_EQ(read_secret("").size(), 0U);
  chmod(path.c_str(), 0640);
  EXPECT_THROW(static_cast<void>(read_secret(path)), Error);
  chmod(path.c_str(), 0600);
  std::ofstream(path) << "short";
  EXPECT_THROW(static_cast<void>(read_secret(path)), Error);
  for (const char* wrong : {"fd:", "fd:x", "fd:-1", "fd:9999", "/no/such/file"})
    EXPECT_THROW(static_cast<void>(read_secret(wrong)), Error) << wrong;
}

TEST(Secret, ComesFromADescriptorThatIsClosed) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "0123456789abcdef", 16), 16);
  close(ends[1]);
  EXPECT_EQ(read_secret("fd:" + std::to_string(ends[0])).size(), 16U);
  EXPECT_EQ(fcntl(ends[0], F_GETFD), -1);
}

}  // namespace

}  // namespace tenon_tests

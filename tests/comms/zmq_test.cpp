// The communicator over ZeroMQ; ranks are threads, and processes where they are killed.
// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <tenon/plugin.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>

#include "tests/comms/contract.h"
#include "tests/comms/threads.h"
#include "tests/support/child.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace {

using tenon::process::Child;
using tenon_tests::kSecond;
using tenon_tests::Opening;
using tenon_tests::Rank;
using tenon_tests::run_ranks;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

const std::string kSecret = "the secret of this training, 32 B";

const tn_comm_type& engine() {
  void* plugin = dlopen((tenon_tests::plugin_folder() + "/comms/zmq.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  return *reinterpret_cast<tn_entry>(dlsym(plugin, TN_ENTRY_NAME))()->comms[0];
}

int free_port() {
  const int probe = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof address;
  bind(probe, reinterpret_cast<sockaddr*>(&address), bytes);
  getsockname(probe, reinterpret_cast<sockaddr*>(&address), &bytes);
  close(probe);
  return ntohs(address.sin_port);
}

int connected(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  const int stranger = socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(connect(stranger, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return stranger;
}

class Zmq : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(tenon_tests::plugin_folder() + "/comms/zmq.so"))
      GTEST_SKIP() << "no communicator zmq in this build";
  }
  std::unique_ptr<Opening> opening(int32_t rank, int32_t ranks, const std::string& secret = kSecret) const {
    auto result = std::make_unique<Opening>(engine(), rank, ranks);
    result->address(address_);
    if (!secret.empty()) result->secret(secret);
    return result;
  }
  // The failure of an open.
  static std::string failure(std::unique_ptr<Opening> opening) {
    try {
      const Rank rank(std::move(opening));
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "no failure";
  }

  const int port_ = free_port();
  std::string address_ = "tcp://127.0.0.1:" + std::to_string(port_);
};

TEST_F(Zmq, keeps_the_contract_encrypted_and_plain) {
  for (const bool encrypt : {true, false})
    for (const int32_t ranks : {2, 3})
      run_ranks(ranks, [&](int32_t me) {
        auto arguments = opening(me, ranks);
        arguments->set("encrypt", encrypt ? 1 : 0);
        arguments->open.silence_ms = 30'000;
        Rank rank(std::move(arguments));
        EXPECT_EQ(rank.world().traits,
                  uint32_t{TN_COMM_SURVIVES} | TN_COMM_AUTHENTICATED | (encrypt ? uint32_t{TN_COMM_ENCRYPTED} : 0u));
        check_contract(rank);
        EXPECT_EQ(rank.world().refused, 0u);
      });
}

TEST_F(Zmq, works_without_a_secret_and_over_sockets_of_the_machine) {
  const tenon_tests::TemporaryFolder folder;
  address_ = "ipc://" + (std::filesystem::path(folder.path()) / "meet").string();
  run_ranks(3, [&](int32_t me) {
    Rank rank(opening(me, 3, ""));
    EXPECT_EQ(rank.world().traits, uint32_t{TN_COMM_SURVIVES});
    check_contract(rank, {uint64_t{1} << 20});
  });
}

TEST_F(Zmq, a_world_of_one_needs_no_address) {
  auto arguments = opening(0, 1);
  arguments->open.address = nullptr;
  Rank rank(std::move(arguments));
  rank.wake();
  EXPECT_TRUE(rank.until([&] { return rank.woken == 1; }));
  EXPECT_EQ(rank.world().ranks, 1);
}

TEST_F(Zmq, what_a_rank_sent_before_it_left_arrives) {
  run_ranks(2, [&](int32_t me) {
    Rank rank(opening(me, 2));
    std::vector<int32_t> values(100'000, me == 0 ? 8 : 0);
    if (me == 0) {
      const uint64_t request = rank.send(1, 0, values);
      EXPECT_EQ(rank.wait(request), TN_OK);
      return rank.close(20 * kSecond);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(rank.wait(rank.receive(0, 0, values)), TN_OK);
    EXPECT_EQ(values, std::vector<int32_t>(100'000, 8));
    EXPECT_EQ(rank.wait(rank.receive(0, 0, values)), TN_IO);
    EXPECT_TRUE(rank.until([&] { return rank.has_lost(0); }));
  });
}

TEST_F(Zmq, a_close_gives_up_on_a_rank_that_does_nothing) {
  std::atomic<bool> closed{false};
  run_ranks(2, [&](int32_t me) {
    Rank rank(opening(me, 2));
    if (me == 0) {
      rank.close(kSecond / 10);
      closed = true;
    }
    while (!closed) std::this_thread::yield();
  });
}

// One of three processes is killed, or stopped and later continued; the others notice, and go on.
TEST_F(Zmq, a_killed_or_stopped_rank_is_lost_and_the_others_go_on) {
  for (const int signal : {SIGKILL, SIGSTOP}) {
    const auto work = [&](int32_t me) {
      auto arguments = opening(me, 3);
      arguments->open.silence_ms = 3000;  // more than a busy machine keeps a rank waiting
      Rank rank(std::move(arguments));
      meet(rank);
      std::vector<int32_t> values(1, me);
      if (me == 2) {
        // The others must have met, too: what a rank sent just before it is killed may not arrive.
        for (int32_t other = 0; other < 2; ++other)
          if (rank.wait(rank.receive(other, 2, values)) != TN_OK) throw std::runtime_error("not met");
        raise(signal);
        if (!rank.until([&] { return rank.has_lost(0) && rank.has_lost(1); })) throw std::runtime_error("not lost");
        return;
      }
      (void)rank.wait(rank.send(2, 2, values));
      const uint64_t request = rank.receive(2, 0, values);
      if (!rank.until([&] { return rank.has_lost(2); })) throw std::runtime_error("rank 2 is not lost");
      if (rank.wait(request) != TN_IO || rank.wait(rank.send(2, 0, values)) != TN_IO)
        throw std::runtime_error("no TN_IO");
      std::vector<int32_t> theirs(1);
      const uint64_t sent = rank.send(1 - me, 1, values);
      if (rank.wait(rank.receive(1 - me, 1, theirs)) != TN_OK || rank.wait(sent) != TN_OK || theirs[0] != 1 - me)
        throw std::runtime_error("the others do not go on");
    };
    std::vector<Child> processes;
    for (int32_t rank = 0; rank < 3; ++rank) processes.emplace_back([&work, rank] { work(rank); });
    EXPECT_EQ(processes[0].wait(), 0);
    EXPECT_EQ(processes[1].wait(), 0);
    processes[2].send(SIGCONT);
    EXPECT_EQ(processes[2].wait(), signal == SIGKILL ? SIGKILL : 0);
  }
}

TEST_F(Zmq, open_names_the_missing_ranks_and_what_is_wrong) {
  auto late = opening(0, 3);
  late->open.deadline_ms = 100;
  EXPECT_THAT(failure(std::move(late)),
              AllOf(StartsWith("status 8"), HasSubstr("ranks 1, 2 did not connect within 100 ms")));
  auto early = opening(1, 2);
  early->open.deadline_ms = 100;
  EXPECT_THAT(failure(std::move(early)), HasSubstr("rank 0 did not connect within 100 ms"));
  auto cancelled = opening(1, 2);
  const volatile int32_t cancel = 1;
  cancelled->open.cancel = &cancel;
  EXPECT_THAT(failure(std::move(cancelled)), StartsWith("status 12"));
  auto lost = opening(1, 2);
  lost->open.address = nullptr;
  EXPECT_THAT(failure(std::move(lost)), AllOf(StartsWith("status 4"), HasSubstr("tcp://")));
  for (const char* wrong :
       {"udp://1.2.3.4:5", "tcp://host", "tcp://:5000", "tcp://host:0", "tcp://host:70000", "tcp://host:1x"}) {
    auto bad = opening(1, 2);
    bad->address(wrong);
    EXPECT_THAT(failure(std::move(bad)), AllOf(StartsWith("status 1"), HasSubstr(wrong)));
  }
  EXPECT_THAT(failure(opening(2, 2)), HasSubstr("expected 0 to 1, got 2"));
  EXPECT_THAT(failure(opening(0, -1)), HasSubstr("at least 1, got -1"));
}

// Ranks 0 and 1 form a world while others, who are not of it, try to.
TEST_F(Zmq, refuses_and_counts_strangers) {
  for (const bool encrypt : {true, false}) {
    std::atomic<int> gone{0};
    run_ranks(6, [&](int32_t thread) {
      if (thread < 2) {
        auto arguments = opening(thread, 2);
        arguments->set("encrypt", encrypt ? 1 : 0);
        Rank rank(std::move(arguments));
        while (gone < 4) EXPECT_EQ(rank.progress(1000), TN_OK);
        EXPECT_GE(rank.world().refused, thread == 0 ? 4u : 0u);
        EXPECT_TRUE(rank.lost.empty());
        meet(rank);
        return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      if (thread == 5) {  // random bytes, and a connection that says nothing
        const int noise = connected(port_);
        std::vector<uint8_t> bytes(4096);
        for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 7919 >> 3);
        EXPECT_GT(send(noise, bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
        close(noise);
        close(connected(port_));
      } else {
        auto arguments = opening(1, 2, thread == 2 ? "another" : kSecret);
        arguments->set("encrypt", encrypt ? 1 : 0);
        if (thread == 3) arguments->open.epoch = 5;
        if (thread == 4) arguments->secret("");
        arguments->open.deadline_ms = 500;
        const std::string reason = failure(std::move(arguments));
        EXPECT_THAT(reason,
                    thread == 3
                        ? testing::Matcher<std::string>(HasSubstr("rank 0 is of epoch 0, this process of 5"))
                        : testing::AnyOf(StartsWith("status 8"), StartsWith("status 9"), StartsWith("status 1:")));
      }
      ++gone;
    });
  }
}

}  // namespace

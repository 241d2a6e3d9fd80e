// Connections between pods, among strangers. SPDX-License-Identifier: Apache-2.0
#include "launch/pod/tunnel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <csignal>
#include <cstdlib>
#include <random>

#include "launch/channel.h"
#include "launch/pod/dial.h"
#include "launch/pod/meeting_place.h"

namespace tenon_tests {

namespace {

using tenon::base::Descriptor;
using tenon::base::write_all;
using tenon::launch::Address;
using tenon::launch::dial;
using tenon::launch::find;
using tenon::launch::make_socket_pair;
using tenon::launch::MeetingPlace;
using tenon::launch::parse_address;
using tenon::launch::SocketPair;
using tenon::launch::Tunnel;
using testing::HasSubstr;

const std::string kSecret(32, 's');

// Returns an address of this machine at which nobody listens.
Address free_address() {
  const Descriptor probe(socket(AF_INET, SOCK_STREAM, 0));
  const auto found = find({"127.0.0.1", "0"}, AI_PASSIVE);
  sockaddr_in address{};
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(probe.get(), found->ai_addr, found->ai_addrlen), 0);
  EXPECT_EQ(getsockname(probe.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  return {"127.0.0.1", std::to_string(ntohs(address.sin_port))};
}

std::string random_bytes(size_t count, uint32_t seed) {
  std::mt19937 draw(seed);
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(draw());
  return bytes;
}

// Reads so many bytes, or what comes before the end.
std::string read_bytes(int from, size_t count) {
  std::string bytes(count, '\0');
  size_t at = 0;
  while (at < count) {
    pollfd wait = {from, POLLIN, 0};
    if (poll(&wait, 1, 10'000) <= 0) break;
    const ssize_t got = read(from, bytes.data() + at, count - at);
    if (got <= 0) break;
    at += static_cast<size_t>(got);
  }
  bytes.resize(at);
  return bytes;
}

// Whether the other side ends within some seconds.
bool ends(int descriptor) {
  pollfd wait = {descriptor, POLLIN, 0};
  char byte;
  return poll(&wait, 1, 10'000) > 0 && read(descriptor, &byte, 1) <= 0;
}

// An agent that has come, and what carries its bytes.
struct Agent {
  std::unique_ptr<Tunnel> tunnel;
  Descriptor local;
};

class TunnelTest : public testing::Test {
 protected:
  Agent come(const std::string& node, const std::string& secret = kSecret) const {
    Agent agent{dial(address, secret, node), Descriptor()};
    SocketPair pair = make_socket_pair();
    agent.tunnel->open(std::move(pair.theirs));
    agent.local = std::move(pair.ours);
    return agent;
  }
  Descriptor stranger() const {
    const auto found = find(address, 0);
    Descriptor result(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(result.get(), found->ai_addr, found->ai_addrlen), 0);
    return result;
  }
  void expect_refused(uint64_t count) const {
    for (int i = 0; i < 1000 && place.refused() < count; ++i) poll(nullptr, 0, 10);
    EXPECT_GE(place.refused(), count);
  }

  TunnelTest() { std::signal(SIGPIPE, SIG_IGN); }

  const Address address = free_address();
  MeetingPlace place{address, kSecret};
};

TEST_F(TunnelTest, CarriesBytesBothWays) {
  const Descriptor launcher = place.expect("node");
  const Agent agent = come("node");
  const std::string there = random_bytes(300'000, 1), back = random_bytes(70'001, 2);
  std::thread sender([&] { EXPECT_TRUE(write_all(launcher.get(), there)); });
  EXPECT_EQ(read_bytes(agent.local.get(), there.size()), there);
  sender.join();
  EXPECT_TRUE(write_all(agent.local.get(), back));
  EXPECT_EQ(read_bytes(launcher.get(), back.size()), back);
  EXPECT_EQ(place.refused(), 0U);
}

TEST_F(TunnelTest, EndsOnBothSides) {
  const Descriptor launcher = place.expect("node");
  {
    const Agent agent = come("node");
    EXPECT_TRUE(write_all(agent.local.get(), "x"));
    EXPECT_EQ(read_bytes(launcher.get(), 1), "x");
  }
  EXPECT_TRUE(ends(launcher.get())) << "the agent has gone";
  Descriptor again = place.expect("node");
  const Agent agent = come("node");
  again.close();
  EXPECT_TRUE(ends(agent.local.get())) << "the launcher has cut it";
}

TEST_F(TunnelTest, WhoHasAnotherSecretIsRefused) {
  const Descriptor launcher = place.expect("node");
  EXPECT_ANY_THROW(come("node", std::string(32, 't')));
  expect_refused(1);
  const Agent agent = come("node");
  EXPECT_TRUE(write_all(agent.local.get(), "x"));
  EXPECT_EQ(read_bytes(launcher.get(), 1), "x") << "the place is still free";
}

TEST_F(TunnelTest, NodesThatNobodyExpectsAreRefused) {
  const Descriptor launcher = place.expect("node");
  const Agent other = come("other");
  EXPECT_TRUE(ends(other.local.get()));
  expect_refused(1);
  const Agent agent = come("node"), twice = come("node");
  EXPECT_TRUE(ends(twice.local.get())) << "its place is taken";
}

TEST_F(TunnelTest, TheHandshakeHasSecondsInAll) {
  const Descriptor slow = stranger();
  write_all(slow.get(), "TENONtn1" + random_bytes(56, 1) + std::string("\0\0\0\x20", 4));
  const auto began = std::chrono::steady_clock::now();
  char bytes[512];
  while (write_all(slow.get(), "x") && recv(slow.get(), bytes, sizeof bytes, MSG_DONTWAIT) != 0 &&
         std::chrono::steady_clock::now() < began + std::chrono::seconds(20))
    poll(nullptr, 0, 500);
  EXPECT_LT(std::chrono::steady_clock::now(), began + std::chrono::seconds(15)) << "although there are always bytes";
  expect_refused(1);
}

// Strangers with bytes of all kinds; TENON_FRAMES of them, for a long run.
TEST_F(TunnelTest, StrangersDoNoHarm) {
  const char* const asked = std::getenv("TENON_FRAMES");
  const uint32_t count = asked == nullptr ? 1000 : static_cast<uint32_t>(std::atoi(asked));
  const Descriptor launcher = place.expect("node");
  const Agent agent = come("node");
  for (uint32_t i = 0; i < count; ++i) {
    const Descriptor other = stranger();
    std::string bytes = random_bytes(i % 150, i);
    if (i % 3 != 0) bytes.insert(0, "TENONtn1");                                    // the protocol, then anything
    if (i % 9 == 1) bytes = "TENONtn1" + random_bytes(56, i) + "\x7f\xff" + bytes;  // a frame of 2 GB
    write_all(other.get(), bytes);
    if (i % 50 != 0) continue;
    const std::string word = random_bytes(1 + i % 1000, i);
    EXPECT_TRUE(write_all(agent.local.get(), word));
    EXPECT_EQ(read_bytes(launcher.get(), word.size()), word);
  }
  expect_refused(count);
}

// Passes bytes on, but changes one of those that the agent sends.
class Changer {
 public:
  Changer(Descriptor from, Descriptor to, size_t at) : from_(std::move(from)), to_(std::move(to)) {
    threads_[0] = std::thread([this, at] { pass(from_.get(), to_.get(), at); });
    threads_[1] = std::thread([this] { pass(to_.get(), from_.get(), SIZE_MAX); });
  }
  ~Changer() {
    shutdown(from_.get(), SHUT_RDWR);
    shutdown(to_.get(), SHUT_RDWR);
    for (std::thread& thread : threads_) thread.join();
  }
  Changer(const Changer&) = delete;
  Changer& operator=(const Changer&) = delete;

 private:
  static void pass(int from, int to, size_t at) {
    std::string part(4096, '\0');
    for (size_t seen = 0;;) {
      const ssize_t got = read(from, part.data(), part.size());
      if (got <= 0) break;
      const auto count = static_cast<size_t>(got);
      if (at >= seen && at < seen + count) part[at - seen] = static_cast<char>(part[at - seen] ^ 1);
      seen += count;
      if (!write_all(to, std::string_view(part).substr(0, count))) break;
    }
    shutdown(to, SHUT_RDWR);
    shutdown(from, SHUT_RDWR);
  }

  Descriptor from_, to_;
  std::thread threads_[2];
};

TEST_F(TunnelTest, AChangedByteEndsIt) {
  const std::string text = random_bytes(5000, 7);
  for (size_t at = 0; at < 5100; at += at < 130 ? 7 : 131) {
    const Descriptor launcher = place.expect("node");
    SocketPair pair = make_socket_pair();
    const Changer changer(std::move(pair.theirs), stranger(), at);
    std::string arrived;
    try {
      Tunnel tunnel(std::move(pair.ours), Tunnel::Side::kConnects, kSecret, "node");
      SocketPair ends = make_socket_pair();
      tunnel.open(std::move(ends.theirs));
      write_all(ends.ours.get(), text);
      arrived = read_bytes(launcher.get(), text.size());
    } catch (const std::runtime_error&) {  // in the handshake
    }
    EXPECT_LT(arrived.size(), text.size()) << at;
    EXPECT_EQ(arrived, text.substr(0, arrived.size())) << at;
  }
}

TEST(Addresses, AreRead) {
  EXPECT_EQ(parse_address("host:7").text(), "host:7");
  EXPECT_EQ(parse_address("[::1]:7").host, "::1");
  EXPECT_EQ(parse_address("fd00::2:7411").text(), "[fd00::2]:7411") << "as Kubernetes writes it";
  for (const char* const text : {"", "host", ":7", "host:"})
    EXPECT_THROW((void)parse_address(text), std::invalid_argument);
  try {
    (void)dial({"nowhere.invalid", "7"}, kSecret, "node");
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("nowhere.invalid:7: "));
  }
}

}  // namespace

}  // namespace tenon_tests

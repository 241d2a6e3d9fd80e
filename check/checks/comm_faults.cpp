// SPDX-License-Identifier: Apache-2.0
#include "check/checks/comm_faults.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>

#include "base/files.h"
#include "check/checks/comm_messages.h"

namespace tenon::check {

namespace {

using Clock = std::chrono::steady_clock;

Millis since(Clock::time_point begin) { return std::chrono::duration_cast<Millis>(Clock::now() - begin); }

// Whether a text has the number.
bool names(const std::string& text, int32_t number) {
  const std::string digits = std::to_string(number);
  const auto is_digit = [&](size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '9'; };
  for (size_t at = text.find(digits); at != std::string::npos; at = text.find(digits, at + 1))
    if ((at == 0 || !is_digit(at - 1)) && !is_digit(at + digits.size())) return true;
  return false;
}

}  // namespace

// One rank of two comes. It says which one does not.
void check_missing(Context& context) {
  CommWorld world(context, 2);
  for (const int32_t there : {0, 1})
    world.run([&](Rank& rank) {
      if (rank.number() != there) return;
      CommPlace place = rank.place();
      place.deadline_ms = 700;
      const tn_status status = rank.comm().try_open(place);
      const std::string reported = rank.comm().reported();
      expect_status(rank, status, TN_IO, "open without rank " + std::to_string(1 - there));
      rank.expect(names(reported, 1 - there),
                  "the report of open does not name the missing rank " + std::to_string(1 - there) + ": " + reported);
    });
}

void check_cancel(Context& context) {
  CommWorld world(context, 2);
  for (const int32_t there : {0, 1})
    world.run([&](Rank& rank) {
      if (rank.number() != there) return;
      volatile int32_t cancel = 0;
      CommPlace place = rank.place();
      place.cancel = &cancel;
      std::thread other([&] {
        std::this_thread::sleep_for(Millis(200));
        cancel = 1;
      });
      const Clock::time_point begin = Clock::now();
      const tn_status status = rank.comm().try_open(place);
      const Millis took = since(begin);
      other.join();
      expect_status(rank, status, TN_CANCELLED, "an open that is cancelled");
      rank.expect(took < Millis(4000),
                  "an open that is cancelled after 200 ms took " + std::to_string(took.count()) + " ms");
    });
}

namespace {

void require_survival(const CommWorld& world) {
  if ((world.traits() & TN_COMM_SURVIVES) == 0)
    throw Skip("TN_COMM_SURVIVES is not among its traits: a lost rank may end the others");
}

// Requests with a rank that is lost end, and so do new ones; the others go on.
void expect_lost(Rank& rank, int32_t lost, const std::vector<int32_t>& left, uint64_t receive, uint64_t send) {
  OpenComm& comm = rank.comm();
  const std::string whose = " of rank " + std::to_string(lost) + ", which is lost,";
  unsigned char byte = 0;
  comm.await_loss(lost);
  expect_status(rank, comm.ended(receive), TN_IO, "a receive" + whose);
  rank.expect(comm.ended(send) != TN_BAD_DATA,
              "a send to rank " + std::to_string(lost) + " ends with " + tn_status_text(TN_BAD_DATA));
  expect_status(rank, comm.ended(comm.receive(lost, 1, &byte, 1)), TN_IO, "a new receive" + whose);
  expect_status(rank, comm.ended(comm.send(lost, 1, &byte, 1)), TN_IO, "a new send" + whose);
  exchange(rank, left, {0, 100, 70'000});
}

}  // namespace

void check_loss(Context& context) {
  CommWorld world(context, 3);
  require_survival(world);
  world.run([](Rank& rank) {
    OpenComm& comm = rank.opened();
    std::vector<unsigned char> message(size_t{1} << 20), room(64);
    uint64_t receive = 0, send = 0;
    if (rank.number() != 2) {
      receive = comm.receive(2, 9, room.data(), room.size());
      send = comm.send(2, 9, message.data(), message.size());
    }
    rank.meet(0, 3);
    if (rank.number() == 2) rank.die();
    expect_lost(rank, 2, {0, 1}, receive, send);
    rank.meet(1, 2);
  });
}

// A rank that stands still is lost after the silence; one that makes progress without messages is not.
void check_silence(Context& context) {
  CommWorld world(context, 3);
  require_survival(world);
  world.silence(1500);
  world.run([](Rank& rank) {
    OpenComm& comm = rank.opened();
    std::vector<unsigned char> message(10), room(64);
    uint64_t receive = 0, send = 0;
    if (rank.number() != 1) receive = comm.receive(1, 9, room.data(), room.size());
    rank.meet(0, 3);
    if (rank.number() == 1) {
      rank.stand_still();
      return;
    }
    send = comm.send(1, 9, message.data(), message.size());
    const int32_t other = 2 - rank.number();
    for (const Clock::time_point begin = Clock::now(); since(begin) < Millis(3000);) (void)comm.progress(Millis(100));
    rank.expect(!comm.has_lost(other), "rank " + std::to_string(other) +
                                           ", which makes progress all the time, is lost after a silence of 1500 ms");
    expect_lost(rank, 1, {0, 2}, receive, send);
    rank.meet(1, 2);
  });
}

namespace {

// A socket that is connected with the address, -1 if that is not possible.
base::Descriptor connected(const std::string& address) {
  const auto connects = [](int family, const auto& to) {
    base::Descriptor socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const bool done = connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
    return done ? std::move(socket) : base::Descriptor();
  };
  if (address.rfind("ipc://", 0) == 0) {
    sockaddr_un to = {};
    to.sun_family = AF_UNIX;
    std::strncpy(to.sun_path, address.c_str() + 6, sizeof to.sun_path - 1);
    return connects(AF_UNIX, to);
  }
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  return connects(AF_INET, to);
}

// Connections with random bytes, and one that says nothing for as long as the world is open.
void make_noise(Rank& rank) {
  std::mt19937_64 random(5);  // NOLINT(cert-msc51-cpp): the same bytes in each run
  base::Descriptor silent;
  for (const Clock::time_point begin = Clock::now(); silent.get() < 0 && since(begin) < Millis(2000);) {
    silent = connected(rank.place().address);
    std::this_thread::sleep_for(Millis(10));
  }
  for (int times = 0; times < 20; ++times) {
    const base::Descriptor socket = connected(rank.place().address);
    unsigned char bytes[200];
    for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random());
    if (socket.get() >= 0 && ::send(socket.get(), bytes, 1 + random() % sizeof bytes, MSG_NOSIGNAL) < 0) continue;
  }
  rank.reach(0);
  rank.await(1, 2);
}

// Opens in the place of rank 1, which comes later, behind the strangers before it.
void open_as_stranger(Rank& rank, const CommPlace& place, const std::string& what) {
  rank.await(0, rank.number() - 2);
  const tn_status status = rank.comm().try_open(place);
  rank.expect(status != TN_OK, "a stranger " + what + " takes part as rank 1");
  rank.reach(0);
}

}  // namespace

// Rank 0 waits; strangers come first, then rank 1.
void check_strangers(Context& context) {
  CommWorld world(context, 2);
  const bool authenticated = (world.traits() & TN_COMM_AUTHENTICATED) != 0;
  const int32_t strangers = authenticated ? 4 : 2;
  world.run(
      [&](Rank& rank) {
        CommPlace stranger = rank.place();
        stranger.rank = 1;
        stranger.deadline_ms = 1000;
        switch (rank.number()) {
          case 2:
            return make_noise(rank);
          case 3:
            ++stranger.epoch;
            return open_as_stranger(rank, stranger, "of another epoch");
          case 4:
            stranger.secret[0] = 'X';
            return open_as_stranger(rank, stranger, "with another secret");
          case 5:
            stranger.secret.clear();
            return open_as_stranger(rank, stranger, "without a secret");
          default:
            break;
        }
        if (rank.number() == 1) rank.await(0, strangers);
        OpenComm& comm = rank.opened();
        exchange(rank, {0, 1}, {1, 5000});
        const tn_comm_world is = comm.world();
        rank.expect(rank.number() == 1 || is.refused > 0, "strangers came, and world says that none was refused");
        rank.meet(1, 2);
      },
      strangers);
}

void check_abort(Context& context) {
  const bool survives = (context.subject().described.value("traits", uint32_t{0}) & TN_COMM_SURVIVES) != 0;
  const int32_t ranks = survives ? ranks_of(context) : 1;
  CommWorld world(context, ranks);
  world.run([&](Rank& rank) {
    OpenComm& comm = rank.opened();
    if (ranks == 2) rank.meet(0, 2);
    rank.expect(true, "");
    if (rank.number() + 1 < rank.ranks()) return comm.await_loss(1);
    rank.may_end();
    comm.abort(3);
  });
}

// With requests that do not end, and a rank that stands still.
void check_close(Context& context) {
  CommWorld world(context, 2);
  world.run([](Rank& rank) {
    OpenComm& comm = rank.opened();
    std::vector<unsigned char> message(size_t{1} << 20), room(64);
    rank.meet(0, 2);
    if (rank.number() == 1) {
      rank.stand_still();
      return;
    }
    (void)comm.receive(1, 2, room.data(), room.size());
    for (int i = 0; i < 3; ++i) (void)comm.send(1, 3, message.data(), message.size());
    (void)comm.progress(Millis(50));
    rank.expect(true, "");
    comm.close(Millis(300));
  });
}

}  // namespace tenon::check

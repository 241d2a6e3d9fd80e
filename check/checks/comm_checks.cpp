// SPDX-License-Identifier: Apache-2.0
#include "check/checks/comm_checks.h"

#include <memory>
#include <thread>

#include "check/checks/comm_faults.h"
#include "check/checks/comm_messages.h"
#include "check/checks/each.h"
#include "check/checks/other_hosts.h"

namespace tenon::check {

namespace {

using Clock = std::chrono::steady_clock;

void expect_quiet(Rank& rank, OpenComm& comm) {
  for (const Millis timeout : {Millis(0), Millis(50)})
    rank.expect(comm.progress(timeout) == 0, "progress of a world of one gives an event");
}

void check_world(Context& context) {
  constexpr uint32_t kKnown = TN_COMM_SURVIVES | TN_COMM_AUTHENTICATED | TN_COMM_ENCRYPTED | TN_COMM_ONE_PER_PROCESS;
  each(comm_attributes(context), text_of, [&](const json& attributes) {
    CommWorld world(context, 1, attributes);
    world.run([&](Rank& rank) {
      OpenComm& comm = rank.opened();
      const tn_comm_world is = comm.world();
      rank.expect(is.rank == 0 && is.ranks == 1,
                  "world says \"" + rank_text(is.rank, is.ranks) + "\" to the only rank");
      rank.expect((is.traits & world.traits()) == world.traits(), "world leaves out traits of the description");
      rank.expect((is.traits & ~kKnown) == 0, "world gives the unknown traits " + std::to_string(is.traits & ~kKnown));
      rank.expect(is.most_bytes >= uint64_t{1} << 20,
                  "world says that a message has at most " + std::to_string(is.most_bytes) + " bytes; expected 1 MiB");
      rank.expect(is.refused == 0, "world counts strangers, and none came");
      expect_quiet(rank, comm);
      comm.close(Millis(1000));
    });
  });
}

// The whole life of a rank.
void live(Rank& rank) {
  (void)rank.opened();
  if (rank.ranks() > 1) {
    exchange(rank, {0, 1}, {0, 3, 10'000});
    rank.meet(0, 2);
  }
  rank.comm().close(Millis(1000));
}

void check_comm_process(Context& context) {
  CommWorld world(context, ranks_of(context));
  world.run([](Rank& rank) {
    const ProcessState start;
    expect_unchanged(
        start, [&] { live(rank); }, [&](bool good, const std::string& text) { rank.expect(good, text); });
  });
}

void check_wake(Context& context) {
  CommWorld world(context, 1);
  world.run([](Rank& rank) {
    OpenComm& comm = rank.opened();
    const auto await_woken = [&](int times, const std::string& what) {
      const Clock::time_point begin = Clock::now();
      while (comm.woken() < times && Clock::now() - begin < OpenComm::kPatience) (void)comm.progress(Millis(6000));
      rank.expect(comm.woken() >= times && Clock::now() - begin < Millis(4500), what + " does not end progress soon");
    };
    comm.wake();
    await_woken(1, "a wake before progress");
    std::thread other([&] {
      std::this_thread::sleep_for(Millis(100));
      comm.wake();
    });
    await_woken(2, "a wake on another thread");
    other.join();
    // Many at once are one event or more.
    std::vector<std::thread> others;
    for (int i = 0; i < 4; ++i)
      others.emplace_back([&] {
        for (int times = 0; times < 500; ++times) comm.wake();
      });
    await_woken(3, "a wake among many");
    for (std::thread& each : others) each.join();
    while (comm.progress(Millis(0)) > 0) continue;
    expect_quiet(rank, comm);
  });
}

void check_twice(Context& context) {
  CommWorld world(context, 1);
  const bool one = (world.traits() & TN_COMM_ONE_PER_PROCESS) != 0;
  world.run([&](Rank& rank) {
    OpenComm& first = rank.opened();
    CommPlace place = rank.place();
    place.address = rank.other_address();
    const auto other = rank.another();
    const tn_status status = other->try_open(place);
    rank.expect((status == TN_OK) != one, one ? "a second object opens, and TN_COMM_ONE_PER_PROCESS is among its traits"
                                              : "a second object does not open: " + other->reported());
    expect_quiet(rank, first);
    first.wake();
    rank.expect(first.progress(Millis(6000)) > 0, "wake does not reach the first of two objects");
    first.close(Millis(1000));
    if (!one) {
      expect_quiet(rank, *other);
      other->close(Millis(1000));
    }
    const tn_status again = rank.comm().try_open(rank.place());
    rank.expect((again == TN_OK) != one, one ? "an object opens after the end of the first one"
                                             : "an object does not open after the first one: " + first.reported());
  });
}

void check_comm_in(Context& context, const OtherHosts& hosts) {
  const int32_t ranks = ranks_of(context);
  hosts.expect_work([&](const Host&) {
    CommWorld world(context, ranks);
    world.run([](Rank& rank) { live(rank); });
    return std::string();
  });
}

}  // namespace

const std::vector<Check>& comm_checks() {
  static const std::vector<Check> checks = {
      {"world", "a world of one opens by a scheme of addresses or without one, says what it is, and closes",
       check_world},
      {"process", kProcessMeaning, check_comm_process},
      {"wake", "wake on any thread ends progress, once at least", check_wake},
      {"twice", "a process has two objects, or one where TN_COMM_ONE_PER_PROCESS says so", check_twice},
      {"messages", "messages of 0 bytes to 3 MiB between three ranks arrive whole", check_messages},
      {"order", "messages of a channel arrive in their order, whatever comes first", check_order},
      {"events", "progress gives no more events than there is room for, and the others later", check_events},
      {"room", "a message of other bytes than its room ends with TN_BAD_DATA, and leaves the next one", check_room},
      {"begin", "send and receive do not wait for a rank that makes no progress", check_begin},
      {"missing", "open ends at the deadline with TN_IO, naming the missing rank", check_missing},
      {"cancel", "an open that is cancelled ends soon with TN_CANCELLED", check_cancel},
      {"loss", "a killed rank is an event, its requests end with TN_IO, and the others go on", check_loss},
      {"silence", "a stopped rank is lost after the silence, and no other one", check_silence},
      {"strangers", "random bytes, another epoch and, where the traits say so, another secret do not take part",
       check_strangers},
      {"abort", "abort ends the process, or returns; a rank that survives learns of it", check_abort},
      {"close", "close gives up on a stopped rank after its time", check_close},
      newer_host_check<check_comm_in>(),
      older_host_check<check_comm_in>(),
  };
  return checks;
}

}  // namespace tenon::check

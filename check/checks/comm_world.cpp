// SPDX-License-Identifier: Apache-2.0
#include "check/checks/comm_world.h"

#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <iterator>
#include <thread>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/temporary.h"
#include "check/watch/other_host.h"
#include "process/child.h"

namespace tenon::check {

// Of one process, written by it.
struct SharedRank {
  std::atomic<const char*> call{nullptr};  // the function of the plugin that it is in, a literal
  std::atomic<bool> may_end{false}, stands{false};
  std::atomic<bool> done{false};
  std::atomic<int64_t> comparisons{0};
  std::atomic<int64_t> fault_at{0};  // nanoseconds; 0: none
  bool skipped = false;
  char fault[2000] = {};
};

// Memory that all processes of a world have.
struct SharedWorld {
  static constexpr int32_t kMost = 8;
  std::atomic<int32_t> moments[Rank::kMoments]{};
  std::atomic<int32_t> answer{0};
  SharedRank ranks[kMost];
};

namespace {

using Clock = std::chrono::steady_clock;

constexpr Millis kLongest{14'000};  // of a world
constexpr Millis kGrace{3000};      // of the other processes after a fault
constexpr Millis kPoll{2};
constexpr const char* kSchemes[] = {"ipc", "tcp", ""};

class SharedMemory : base::NotCopied {
 public:
  SharedMemory() {
    void* const memory = mmap(nullptr, sizeof(SharedWorld), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw Error(TN_OUT_OF_MEMORY, "no memory for the ranks of a world");
    world_ = new (memory) SharedWorld;
  }
  ~SharedMemory() { munmap(world_, sizeof(SharedWorld)); }
  [[nodiscard]] SharedWorld& operator*() const { return *world_; }

 private:
  SharedWorld* world_;
};

// A port of this machine that nothing listens at.
int free_port() {
  const base::Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof address;
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0 ||
      getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &bytes) != 0)
    throw Error(TN_IO, "no port of this machine is free");
  return ntohs(address.sin_port);
}

std::string address_of(const std::string& scheme, const base::TemporaryFolder& folder, const char* name = "world") {
  if (scheme == "ipc") return "ipc://" + folder.file(name);
  return scheme == "tcp" ? "tcp://127.0.0.1:" + std::to_string(free_port()) : "";
}

// Does the work of one process, and writes down how it went.
void work_as(SharedRank& own, const std::function<void()>& work) {
  const auto write = [&](const char* fault, bool skipped) {
    std::strncpy(own.fault, fault, sizeof own.fault - 1);
    own.skipped = skipped;
    own.fault_at = Clock::now().time_since_epoch().count();
  };
  try {
    work();
    if (const std::string fault = Lending::is_on() ? other_host_fault() : ""; !fault.empty())
      write(fault.c_str(), false);
  } catch (const Skip& skip) {
    write(skip.what(), true);
  } catch (const std::exception& fault) {
    write(fault.what(), false);
  } catch (...) {
    write("an exception of unknown type", false);
  }
  own.done = true;
}

}  // namespace

std::vector<json> comm_attributes(const Context& context) {
  std::vector<json> result;
  for (const json& each : context.subject().cases) {
    for (const auto& [key, value] : each.items())
      if (key != "type" && key != "attributes")
        throw Fault("a case of a communicator has the unknown key \"" + key + "\"");
    result.push_back(each.value("attributes", json::object()));
  }
  if (result.empty()) result.push_back(json::object());
  return result;
}

int32_t ranks_of(Context& context) {
  try {
    const CommWorld world(context, 2);
    return 2;
  } catch (const Skip&) {
    return 1;
  }
}

// ---- one process

Rank::Rank(const Subject& subject, const CommValues& values, SharedWorld& shared, int32_t number, CommPlace place,
           std::string other_address)
    : subject_(subject),
      values_(values),
      shared_(shared),
      own_(shared.ranks[number]),
      number_(number),
      place_(std::move(place)),
      other_address_(std::move(other_address)),
      comm_(another()) {}
Rank::~Rank() = default;

std::unique_ptr<OpenComm> Rank::another() const {
  return std::make_unique<OpenComm>(subject_.file, subject_.type, values_, &own_.call);
}

void Rank::expect(bool good, const std::string& text) {
  ++own_.comparisons;
  if (!good) throw Fault(text);
}

void Rank::reach(int moment) { ++shared_.moments[moment]; }

void Rank::await(int moment, int32_t count) {
  const Clock::time_point begin = Clock::now();
  while (shared_.moments[moment] < count) {
    if (Clock::now() - begin > kLongest) throw Fault("waits for the other ranks in vain");
    std::this_thread::sleep_for(kPoll);
  }
}

void Rank::meet(int moment, int32_t count) {
  const Clock::time_point begin = Clock::now();
  reach(moment);
  while (shared_.moments[moment] < count) {
    if (Clock::now() - begin > kLongest) throw Fault("waits for the other ranks in vain");
    (void)comm_->progress(kPoll);
  }
}

void Rank::may_end() { own_.may_end = true; }
void Rank::die() {
  may_end();
  raise(SIGKILL);
  _exit(1);  // not reached
}
void Rank::stand_still() {
  own_.stands = true;
  raise(SIGSTOP);
}

// ---- the world

CommWorld::CommWorld(Context& context, int32_t ranks, const json& attributes)
    : context_(context), ranks_(ranks), values_(attributes, context.subject().described.at("attributes")) {
  scheme_ = scheme();
  if (ranks > 1 && scheme_.empty())
    throw Skip("a launcher connects its ranks; the kit, which starts none, opens worlds of one alone");
}

CommWorld::CommWorld(Context& context, int32_t ranks) : CommWorld(context, ranks, comm_attributes(context).front()) {}

uint32_t CommWorld::traits() const { return context_.subject().described.value("traits", uint32_t{0}); }

// Returns the first one by which a world of one opens.
std::string CommWorld::scheme() {
  const base::TemporaryFolder folder;
  const SharedMemory memory;
  SharedWorld& shared = *memory;
  process::Child child([&] {
    work_as(shared.ranks[0], [&] {
      std::string reasons;
      for (; shared.answer < static_cast<int32_t>(std::size(kSchemes)); ++shared.answer) {
        CommPlace place;
        place.address = address_of(kSchemes[shared.answer], folder);
        OpenComm comm(context_.subject().file, context_.subject().type, values_.get(), &shared.ranks[0].call);
        const tn_status status = comm.try_open(place);
        if (status == TN_OK) return;
        const std::string where = place.address.empty() ? "without an address" : "at " + place.address;
        if (status != TN_UNSUPPORTED)
          throw Fault("a world of one does not open " + where + ": " + tn_status_text(status) + ": " + comm.reported());
        reasons += "; " + where + ": " + comm.reported();
      }
      throw Fault("a world of one opens neither by ipc:// nor by tcp:// nor without an address" + reasons);
    });
  });
  const Clock::time_point begin = Clock::now();
  while (!child.has_ended() && Clock::now() - begin < kLongest) std::this_thread::sleep_for(kPoll);
  report(shared, 1,
         [&](int32_t) { return child.has_ended() ? process::ChildEnd{.text = {}, .status = child.wait()}.how() : ""; });
  return kSchemes[shared.answer];
}

void CommWorld::run(const std::function<void(Rank&)>& work, int32_t strangers) {
  const int32_t processes = ranks_ + strangers;
  const base::TemporaryFolder folder;
  const SharedMemory memory;
  SharedWorld& shared = *memory;
  CommPlace place;
  place.ranks = ranks_;
  place.epoch = 7;
  place.address = address_of(scheme_, folder);
  place.secret = "0123456789abcdef0123456789ABCDEF";
  place.silence_ms = silence_ms_;
  const std::string other_address = address_of(scheme_, folder, "other");
  std::vector<process::Child> children;
  children.reserve(static_cast<size_t>(processes));
  for (int32_t number = 0; number < processes; ++number)
    children.emplace_back([&] {
      work_as(shared.ranks[number], [&] {
        place.rank = number;
        Rank rank(context_.subject(), values_.get(), shared, number, place, other_address);
        work(rank);
      });
    });
  Clock::time_point deadline = Clock::now() + kLongest;
  const auto is_over = [&] {
    bool over = true;
    for (int32_t number = 0; number < processes; ++number) {
      const SharedRank& rank = shared.ranks[number];
      const bool ended = children[static_cast<size_t>(number)].has_ended();
      const bool failed = rank.fault_at != 0 || (ended && !rank.done && !rank.may_end);
      if (failed) deadline = std::min(deadline, Clock::now() + kGrace);
      over = over && (ended || rank.stands);
    }
    return over || Clock::now() > deadline;
  };
  while (!is_over()) std::this_thread::sleep_for(kPoll);
  report(shared, processes, [&](int32_t number) {
    process::Child& child = children[static_cast<size_t>(number)];
    return child.has_ended() ? process::ChildEnd{.text = {}, .status = child.wait()}.how() : "";
  });
}

// end_of(number): how a process has ended, "" if it has not. An end explains the faults of the others, and the fault of
// a stranger those of the ranks that it disturbs.
void CommWorld::report(const SharedWorld& shared, int32_t processes,
                       const std::function<std::string(int32_t)>& end_of) {
  const auto name_of = [&](int32_t number) {
    if (processes == 1) return std::string("it");
    return number < ranks_ ? rank_text(number, ranks_) : std::string("a stranger");
  };
  std::string hangs;
  const SharedRank* first = nullptr;
  const auto is_before = [&](const SharedRank& rank, const SharedRank& other) {
    const bool strange = &rank - shared.ranks >= ranks_, other_is = &other - shared.ranks >= ranks_;
    return strange == other_is ? rank.fault_at < other.fault_at : strange;
  };
  for (int32_t number = 0; number < processes; ++number) {
    const SharedRank& rank = shared.ranks[number];
    context_.count(rank.comparisons);
    const char* const call = rank.call;
    const std::string place = call == nullptr ? "" : std::string(", in ") + call;
    const std::string who = name_of(number);
    if (rank.fault_at != 0 && (first == nullptr || is_before(rank, *first))) first = &rank;
    if (rank.done || rank.stands) continue;
    if (const std::string how = end_of(number); !how.empty()) {
      if (!rank.may_end) throw Fault(who + " ended its process by " + how + place);
      continue;
    }
    if (hangs.empty() || call != nullptr)
      hangs = who + " does not end within " + std::to_string(kLongest.count()) + " ms" + place;
  }
  if (first != nullptr) {
    const auto number = static_cast<int32_t>(first - shared.ranks);
    if (first->skipped) throw Skip(first->fault);
    throw Fault((processes == 1 ? "" : "(" + name_of(number) + ") ") + first->fault);
  }
  if (!hangs.empty()) throw Fault(hangs);
}

}  // namespace tenon::check
